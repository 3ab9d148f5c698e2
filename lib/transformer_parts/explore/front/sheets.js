// The sheets of the interview page without a kernel. Every text is in the page, under <details>; here questions are
// filtered, and of the statements one is shown at a time, its verdict after the choice.

/** Put numbers into the words of a tally, which come with the page in its language. */
function fillIn(tally, numbers) {
  tally.textContent = tally.dataset.words.replace(/\{(\w+)\}/g, (_, name) => numbers[name]);
}

/** Show the questions of a topic, of a level, and of those that everybody asks. */
function filterQuestions(sheet) {
  const form = sheet.querySelector(".filters");
  const [topic, level, asked] = ["topic", "level", "asked"].map((name) => form.querySelector(`[data-filter=${name}]`));
  const questions = [...sheet.querySelectorAll(".question")];
  const filter = () => {
    for (const question of questions) {
      const fits =
        [question.closest(".topic").dataset.topic, ""].includes(topic.value) &&
        [question.dataset.level, ""].includes(level.value) &&
        (question.dataset.asked || !asked.checked);
      question.hidden = !fits;
    }
    for (const part of sheet.querySelectorAll(".topic")) part.hidden = !part.querySelector(".question:not([hidden])");
    const count = questions.filter((question) => !question.hidden).length;
    fillIn(form.querySelector(".tally"), { count, all: questions.length });
  };
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  filter();
}

/** Let statements be judged, one at a time; the first choice counts. */
function judgeClaims(sheet) {
  const claims = [...sheet.querySelectorAll(".claim")];
  const round = sheet.querySelector(".round");
  const next = round.querySelector("[data-next]");
  const said = sheet.querySelector(".said");
  let [at, right, tried] = [0, 0, 0];
  const show = () => claims.forEach((claim, place) => (claim.hidden = place !== at));
  const choose = (claim, button) => {
    const hit = button.value === claim.dataset.holds;
    const verdict = claim.querySelector(".verdict");
    if (verdict.hidden) {
      [right, tried] = [right + hit, tried + 1];
      fillIn(round.querySelector(".tally"), { right, tried });
      button.setAttribute("aria-pressed", "true");
      verdict.classList.add(hit ? "right" : "wrong");
    }
    verdict.hidden = false;
    verdict.open = true;
    const word = hit ? said.dataset.right : said.dataset.wrong;
    said.textContent = [word, verdict.querySelector(".inside").textContent].join(" ");
    next.focus({ preventScroll: true });
  };
  for (const claim of claims) {
    claim.querySelector(".verdict").hidden = true;
    claim.querySelector(".choice").hidden = false;
    for (const button of claim.querySelectorAll("button")) button.addEventListener("click", () => choose(claim, button));
  }
  next.addEventListener("click", () => {
    at = (at + 1) % claims.length;
    show();
    claims[at].querySelector("button").focus({ preventScroll: true });
  });
  round.hidden = false;
  show();
}

filterQuestions(document.querySelector("[data-sheet=QuestionCards]"));
judgeClaims(document.querySelector("[data-sheet=ClaimRound]"));
