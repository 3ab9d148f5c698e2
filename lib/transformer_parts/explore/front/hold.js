// Between the hand and the kernel: a control whose frames are in the page need not tell the kernel each value it passes.
//
//     const hold = new Hold(control, () => …, () => …);     // may a value wait now?  A value that waited was told.
//     hold.pay();                                           // what waits is told at once
//     hold.end();                                           // from now on the control tells its values as ever
//
// The kernel has to answer every message, and JupyterLab redraws its toolbar at each answer: told at every step, it
// would take more of a frame's time than the picture does.

const REST = 100; // milliseconds without a change after which a hand rests, and its value is told

/** Keeps the values of a control, which is a model of ipywidgets, from the kernel until the hand rests. */
export class Hold {
  constructor(control, mayWait, ontold = () => {}) {
    Object.assign(this, { control, ontold, waiting: null, timer: 0 });
    this.save = (...args) => {
      this.waiting = args;
      if (!mayWait()) return this.pay();
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.pay(), REST);
    };
    // What the kernel says of an earlier value is late: the hand has gone on.
    this.take = ({ value, index, ...others }) => {
      const late = this.waiting ? {} : { ...(value !== undefined && { value }), ...(index !== undefined && { index }) };
      return this.original("set_state")({ ...others, ...late });
    };
    control.save_changes = this.save;
    control.set_state = this.take;
  }

  original(name) {
    return Object.getPrototypeOf(this.control)[name].bind(this.control);
  }

  /** Tell the kernel everything that has changed. */
  pay() {
    clearTimeout(this.timer);
    if (!this.waiting) return;
    const args = this.waiting;
    this.waiting = null;
    this.original("save_changes")(...args);
    this.ontold();
  }

  end() {
    this.pay();
    // Another view of the panel may have taken the control over.
    if (this.control.save_changes === this.save) delete this.control.save_changes;
    if (this.control.set_state === this.take) delete this.control.set_state;
  }
}
