// Predictions without a kernel: the reader commits to a number or a choice; then the answer stands beside it, and the
// fold with the reason opens.

/** Return the fold with the answer, the first after a prediction. */
function foldAfter(form) {
  const folds = [...document.querySelectorAll(".prose details")];
  return folds.find((fold) => form.compareDocumentPosition(fold) & Node.DOCUMENT_POSITION_FOLLOWING);
}

for (const form of document.querySelectorAll(".prediction")) {
  const told = form.querySelector(".told");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (told.textContent) return; // the first answer counts
    const field = form.querySelector("input");
    const { answer } = form.dataset;
    const said = field ? `${field.value.trim()} ${form.querySelector("label span").textContent}`.trim() : event.submitter.value;
    told.textContent = told.dataset.words.replace(/\{(\w+)\}/g, (_, name) => ({ said, answer })[name]);
    if (!field) {
      event.submitter.setAttribute("aria-pressed", "true");
      told.classList.add(said === answer ? "right" : "wrong");
    } else {
      field.readOnly = true;
    }
    const fold = foldAfter(form);
    if (fold) fold.open = true;
  });
  form.hidden = false;
}
