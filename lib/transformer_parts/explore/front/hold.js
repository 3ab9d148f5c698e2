// Between the hand and the kernel: the values that a control passes are not told, only the one on which the hand rests.
//
//     const hold = new Hold(control, {
//       stamp,                                         // returns what goes with a value that is saved now
//       tell,                                          // tells the kernel the control's value, with that
//       isLate,                                        // whether what the kernel says is of an earlier value
//     });
//     hold.pay();                                      // what waits is told at once
//     hold.end();                                      // from now on the control tells its values as ever
//
// The kernel has to answer every message, and JupyterLab redraws its toolbar at each answer: told at every step, it
// would take more of a frame's time than the picture does.  And a control of ipywidgets tells a value only when the one
// before it was answered: a button that is pressed meanwhile would be heard first.
//
// `save_changes`, `set_state` and `sync` are replaced on one model only, and put back at the end.  This relies on how
// WidgetModel of @jupyter-widgets/base 6 (ipywidgets 8, see the pin in pyproject.toml) uses them: a view calls
// save_changes, save_changes hands the changes to sync, and what the kernel sends arrives in set_state.

const PLACE = ["value", "index"]; // what of a control's state the hand moves
const REST = 100; // milliseconds without a change after which a hand rests

/** Keeps the values of a control, which is a model of ipywidgets, from the kernel until the hand rests. */
export class Hold {
  constructor(control, { stamp, tell, isLate }) {
    Object.assign(this, { control, tell, stamp: null, waits: false, timer: 0 });
    this.save = () => {
      this.waits = true;
      this.stamp = stamp();
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.pay(), REST);
    };
    // What the kernel says of an earlier value does not move the hand.
    this.take = (state) => {
      const others = Object.fromEntries(Object.entries(state).filter(([name]) => !PLACE.includes(name)));
      return this.original("set_state")(this.waits || isLate() ? others : state);
    };
    control.save_changes = this.save;
    control.set_state = this.take;
  }

  original(name) {
    return Object.getPrototypeOf(this.control)[name].bind(this.control);
  }

  pay() {
    clearTimeout(this.timer);
    if (!this.waits) return;
    this.waits = false;
    // The control takes its changes for told.
    this.control.sync = () => {};
    this.original("save_changes")();
    delete this.control.sync;
    this.tell(this.stamp);
  }

  end() {
    this.pay();
    // Another view of the panel may have taken the control over.
    if (this.control.save_changes === this.save) delete this.control.save_changes;
    if (this.control.set_state === this.take) delete this.control.set_state;
  }
}
