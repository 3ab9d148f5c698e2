// What the controls of ipywidgets leave unsaid to a screen reader: what a slider is called, what it shows, what has
// become of the numbers once the hand rests.

/** Give the handles of a slider its label as their name, and the text beside it as their value. */
export function nameSlider(element, label, signal) {
  const shown = element.querySelector(".widget-readout");
  for (const handle of element.querySelectorAll(".noUi-handle")) {
    handle.setAttribute("aria-label", label);
    const speak = () => {
      const text = shown?.textContent.trim();
      if (text && handle.getAttribute("aria-valuetext") !== text) handle.setAttribute("aria-valuetext", text);
    };
    speak();
    // The slider writes a number of its own there at each step.
    const observer = new MutationObserver(speak);
    observer.observe(handle, { attributeFilter: ["aria-valuetext"] });
    if (shown) observer.observe(shown, { childList: true, characterData: true, subtree: true });
    signal.addEventListener("abort", () => observer.disconnect());
  }
}

/** Give the buttons of a player the names that say what they move. */
export function namePlayer(element, names) {
  element.querySelectorAll("button").forEach((button, i) => button.setAttribute("aria-label", names[i]));
}

/** The lines of a table of numbers as text. */
export function lines(html) {
  const box = document.createElement("template");
  box.innerHTML = html;
  return [...box.content.querySelectorAll("tr")].map((row) =>
    [...row.children].map((cell) => cell.textContent.trim()).join(" "),
  );
}

/** Says, in a region that screen readers listen to, which lines of the table have changed since it last spoke. */
export class Speaker {
  constructor(region, html) {
    region.setAttribute("role", "status");
    region.setAttribute("aria-live", "polite");
    this.region = region;
    this.said = lines(html);
  }

  say(html) {
    const now = lines(html);
    const changed = now.filter((line) => !this.said.includes(line));
    this.said = now;
    if (changed.length) this.region.textContent = changed.join("; ");
  }
}
