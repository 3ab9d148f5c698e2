# make lab    install into .venv and open JupyterLab on the start page
# make test   install what the tests need and run them, what is alike sampled
# `make help` lists the rest.

PYTHON ?= python3
VENV := .venv
LOWEST := .venv-lowest
BIN := $(VENV)/bin
START := notebooks/en/00_start_here.ipynb
# The superuser of a container may start JupyterLab; nobody else needs the flag.
LAB_ARGS ?= $(if $(filter 0,$(shell id -u)),--allow-root)

.PHONY: help lab test test-everything test-fast test-lowest lock size oracles chromium model weights bench bench-browser bench-model \
  notebooks stills moving goldens site page handouts words excerpt lint clean

help:
	@sed -n 's/^\([a-z-]*\):.*## */make \1\t/p' $(MAKEFILE_LIST) | expand -t 22

# CI installs what requirements.lock names, by its hashes; everybody else the newest of each range.
ifdef CI
INSTALL := --require-hashes --only-binary :all: -r requirements.lock
else
INSTALL := -r requirements.txt
endif

$(VENV)/.installed: requirements.txt requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; $(PYTHON) is $$($(PYTHON) --version 2>&1). Name another by PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet $(INSTALL)
	$(if $(CI),$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .)
	@# JupyterLab asks every newcomer whether to fetch news; here nothing is fetched, so it need not ask.
	$(BIN)/jupyter labextension disable --level=sys_prefix @jupyterlab/apputils-extension:announcements
	@touch $@

$(VENV)/.oracles: $(VENV)/.installed requirements-oracles.txt
	$(BIN)/python -m pip install --quiet -r requirements-oracles.txt
	@touch $@

lab: $(VENV)/.installed ## install and open JupyterLab on the start page
	$(BIN)/jupyter lab $(LAB_ARGS) --LabApp.default_url=/lab/tree/$(START)

# One worker for each core: threads that BLAS adds to them would only wait for one another.
WORKERS := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto

# What is alike is sampled, by the commit; TESTS=--sample-seed=... repeats the sample that the head of a run names.
TESTS ?=

# In CI the optional oracles and Chromium must be there, and the real model's weights are fetched if they can be.
test: $(VENV)/.installed $(if $(CI),$(VENV)/.oracles) chromium ## run the tests, in about ten minutes
ifdef CI
	$(BIN)/python -m transformer_parts.models.weights || echo "No weights: the tests that need them are skipped"
endif
	$(WORKERS) --dist worksteal $(TESTS) -m "not browser"
	$(WORKERS) --dist loadfile -p widget_scan --nbval --nbval-cell-timeout=120 notebooks
	$(WORKERS) --dist loadgroup --maxprocesses=2 $(TESTS) -m browser --reruns 1
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/oxlint --deny-warnings lib/transformer_parts/explore/front

test-everything: TESTS = --everything
test-everything: test ## run the tests and leave nothing out, before a release

test-fast: $(VENV)/.installed ## run the tests without notebooks, browser, and what goes through all explorers
	$(WORKERS) --dist worksteal -m "not browser and not sweep" --ignore tests/notebooks

$(LOWEST)/.installed: requirements-lowest.txt requirements.txt pyproject.toml
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --upgrade pip
	$(LOWEST)/bin/python -m pip install --quiet -r requirements.txt -c requirements-lowest.txt
	@touch $@

test-lowest: $(LOWEST)/.installed ## run the tests of numbers and explorers with the lowest versions that are declared
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(LOWEST)/bin/python -m pytest -n auto --dist worksteal $(TESTS) \
	  -m "not browser" tests/maths tests/models tests/runs tests/learn tests/explore tests/draw

# The packages themselves, and what they need, for every platform and Python; the package itself is installed beside.
lock: $(VENV)/.installed ## write requirements.lock again, within the ranges; LOCK_ARGS=--upgrade takes the newest
	$(BIN)/python -m pip install --quiet uv
	grep -v '^-e' requirements.txt | $(BIN)/uv pip compile --quiet --universal --python-version 3.11.5 --generate-hashes \
	  --no-annotate --custom-compile-command "make lock" --extra model pyproject.toml - -o requirements.lock $(LOCK_ARGS)

size: $(VENV)/.installed ## count lines of code by room, without docstrings, comments and blank lines
	$(BIN)/python tools/size.py

oracles: $(VENV)/.oracles ## install PyTorch and transformers, which some tests compare with

chromium:
	@command -v chromium chromium-browser google-chrome >/dev/null || \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "Installing Chromium for the browser tests"; \
	    apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null; \
	  else \
	    echo "No Chromium found: the browser tests will be skipped. Debian, Ubuntu: sudo apt-get install chromium"; \
	  fi

bench: $(VENV)/.oracles ## compare the speed of the maths with a copy and with PyTorch
	$(BIN)/python benchmarks/bench.py
	$(BIN)/python benchmarks/bench_training.py

$(VENV)/.bench: $(VENV)/.installed requirements-bench.txt
	$(BIN)/python -m pip install --quiet -r requirements-bench.txt
	@touch $@

bench-browser: $(VENV)/.bench chromium ## drag every explorer in Chromium, idle and busy, beside interact and ipympl
	$(BIN)/python benchmarks/bench_browser.py

bench-model: $(VENV)/.oracles model ## measure the real model: loading, memory, tokens a second, beside PyTorch
	$(BIN)/python benchmarks/bench_model.py

notebooks: $(VENV)/.installed ## run all notebooks and write them in the committed form
	$(BIN)/python tools/notebooks.py

stills: $(VENV)/.installed ## draw the stills in figures/, or one: make stills NAME=RopePlane
	$(BIN)/python tools/stills.py $(NAME)

moving: $(VENV)/.installed ## draw the moving picture at the head of the README
	$(BIN)/python tools/moving_picture.py

goldens: $(VENV)/.installed ## write what the tests of tables, pictures, exercises and questions compare, and print what changes
	$(BIN)/python tools/goldens.py

weights: model
model: $(VENV)/.installed ## fetch the real model's weights (90 MB) into weights/, once, and verify them
	$(BIN)/python -m transformer_parts.models.weights

site: $(VENV)/.installed ## build site/: every notebook as a page that needs no kernel and no network
	$(BIN)/python tools/make_site.py

page: $(VENV)/.installed ## write one notebook as a single file: make page NAME=04_rope writes pages/04_rope.html
	@test -e "notebooks/en/$(NAME).ipynb" || { echo "NAME: got '$(NAME)', want a notebook: make page NAME=04_rope"; exit 1; }
	$(BIN)/python tools/make_site.py --one-file --out pages notebooks/en/$(NAME).ipynb

handouts: $(VENV)/.installed ## write handouts/: a page to print for each notebook, and one for everything
	$(BIN)/python tools/make_handouts.py

# `make words LANGUAGE=de` begins a language; without it the catalogues that exist are brought up to date.
LOCALE := lib/transformer_parts/language/locale
words: $(VENV)/.installed ## bring the catalogues of words up to date and compile them; LANGUAGE=de begins one
	@mkdir -p $(LOCALE)
	$(BIN)/pybabel -q extract --no-default-keywords -k _ -k plural:1,2 -c Translators: --add-location file \
	  -F babel.cfg --project transformer-parts -o $(LOCALE)/transformer_parts.pot lib/transformer_parts tools
ifdef LANGUAGE
	test -e $(LOCALE)/$(LANGUAGE) || \
	  $(BIN)/pybabel -q init -D transformer_parts -i $(LOCALE)/transformer_parts.pot -d $(LOCALE) -l $(LANGUAGE)
endif
	for po in $(LOCALE)/*/LC_MESSAGES/*.po; do \
	  test -e $$po || continue; \
	  $(BIN)/pybabel -q update --no-fuzzy-matching --ignore-pot-creation-date -i $(LOCALE)/transformer_parts.pot -o $$po \
	    -l $$(basename $$(dirname $$(dirname $$po))) && \
	  $(BIN)/pybabel compile --statistics -i $$po -o $${po%po}mo || exit 1; done

excerpt: weights ## write the committed excerpt and measurements of the real model anew
	$(BIN)/python -m transformer_parts.models.make_excerpt
	$(BIN)/python -m transformer_parts.models.make_rope_layout

lint: $(VENV)/.installed ## format and check the code
	$(BIN)/ruff format
	$(BIN)/ruff check --fix
	$(BIN)/oxlint --deny-warnings lib/transformer_parts/explore/front

clean: ## remove the virtual environment and everything generated
	rm -rf $(VENV) $(LOWEST) site pages handouts screenshots bench-results .pytest_cache .ruff_cache
