// The controls of an explorer on its page: sliders, menus and switches of the browser's own, each with a label.
//
//     const control = new Control({name, label, kind, …}, id);
//     control.describe({…});                           // another range
//     control.put(at);                                 // another value
//
// A value is known by its place: a whole number, the value itself on a slider with `low`, `high` and `step`, else the
// number of its label.  A value that has no place here is known by its label alone.

export class Control {
  constructor(description, id, { play } = {}) {
    this.kind = description.kind;
    this.element = document.createElement("div");
    this.element.className = `tp-control tp-${this.kind}`;
    this.input = document.createElement(this.kind === "menu" ? "select" : "input");
    this.input.id = id;
    this.input.dataset.control = this.name = description.name;
    this.label = document.createElement("label");
    this.label.htmlFor = id;
    if (this.kind === "switch") {
      this.input.type = "checkbox";
      this.label.append(this.input, document.createElement("span"));
      this.element.append(this.label);
    } else {
      this.element.append(this.label);
      const track = document.createElement("span");
      track.className = "tp-track";
      if (play) track.append(play);
      track.append(this.input);
      this.element.append(track);
    }
    if (this.kind === "slider") {
      this.input.type = "range";
      this.value = document.createElement("span");
      this.value.className = "tp-value";
      this.value.setAttribute("aria-hidden", "true");
      this.element.append(this.value);
    }
    this.describe(description);
  }

  /** Take a range: labels, or whole numbers from `low` to `high`. */
  describe({ label, hidden, reason = "", labels, low, high, step }) {
    this.reason = reason;
    this.element.title = reason;
    this.element.classList.toggle("tp-idle", Boolean(reason));
    this.heading = label;
    (this.kind === "switch" ? this.label.lastChild : this.label).textContent = label;
    this.element.hidden = Boolean(hidden);
    const at = this.at;
    Object.assign(this, { labels, low: low ?? 0, high: high ?? (labels?.length ?? 2) - 1, step: step ?? 1 });
    if (this.kind === "slider") {
      Object.assign(this.input, { min: this.low, max: this.high, step: this.step });
    } else if (this.kind === "menu") {
      this.input.replaceChildren(...labels.map((text, number) => new Option(text, number)));
    }
    this.disable(this.gone);
    if (Number.isFinite(at)) this.put(Math.min(at, this.high));
  }

  /** Take no value any more, or take them again; a control of one value never does. */
  disable(gone = false) {
    this.gone = gone;
    this.input.disabled = gone || this.low === this.high || Boolean(this.reason);
  }

  /** How many letters the longest value has. */
  get longest() {
    if (this.kind !== "slider") return 0;
    return Math.max(...(this.labels ?? [this.text(this.low), this.text(this.high)]).map((text) => text.length));
  }

  /** The place of the value. */
  get at() {
    return this.kind === "switch" ? Number(this.input.checked) : this.input.value === "" ? NaN : Number(this.input.value);
  }

  put(at) {
    const place = typeof at === "string" ? this.labels.indexOf(at) : at;
    this.input.querySelector("option[value='-1']")?.remove();
    if (place < 0 && this.kind === "menu") this.input.add(new Option(at, -1));
    if (this.kind === "switch") this.input.checked = Boolean(at);
    else if (this.input.value !== String(place)) this.input.value = place;
    this.say(place < 0 && this.labels ? at : undefined);
  }

  /** Show the value as text. */
  say(text = this.text(this.at)) {
    if (!this.value) return;
    if (this.value.textContent === text) return;
    this.value.textContent = text;
    this.input.setAttribute("aria-valuetext", text);
  }

  text(at) {
    return this.labels ? (this.labels[at] ?? "") : at.toLocaleString("en-US");
  }

  /** How many values a pointer can tell apart. */
  get pixels() {
    return Math.ceil(this.kind === "slider" ? this.input.clientWidth : 0);
  }
}
