// What each pass changed; passes that changed nothing are hidden unless asked for.

class PassesPane {
  constructor({ model, selection }) {
    Object.assign(this, { model, selection });
    this.choice = element("select", { "aria-label": "Pass", change: () => this.show() });
    this.all = element("input", { type: "checkbox", change: () => this.list() });
    const hidden = model.passes.filter((one) => !changed(one)).length;
    this.tools = [
      this.choice,
      element("label", { hidden: !hidden }, this.all, ` ${hidden} without change`),
    ];
    this.why = element("div", { class: "tip" });
    this.view = new LineView("Difference that a pass made", (number) => {
      this.selection.select(this.model.sets[this.sets[number]], this);
    });
    this.root = element("div", { class: "body" }, this.why, this.view.root);
    this.sets = [];
    this.listener = (event) => this.mark(event.from);
    selection.addEventListener("change", this.listener);
    this.list();
  }

  close() {
    this.selection.removeEventListener("change", this.listener);
  }

  list() {
    const before = this.choice.value;
    const shown = this.model.passes.map((one, n) => [one, n]).filter(([one]) => this.all.checked || changed(one));
    this.choice.replaceChildren(
      ...shown.map(([one, n]) => {
        const what = changed(one) ? `−${one.removed} +${one.added}` : "no change";
        return element("option", { value: n, selected: String(n) === before }, `${n + 1}. ${one.name}  ${what}`);
      }),
    );
    this.show();
  }

  async show() {
    const pass = this.model.passes[Number(this.choice.value)];
    if (!pass || this.choice.value === "") {
      this.why.textContent = "No pass has run, or none has changed anything.";
      this.view.show([]);
      return;
    }
    this.why.textContent = `${pass.name}: ${pass.why}. ${duration(pass.seconds)}.`;
    const data = changed(pass) ? await section(pass.section) : { text: "", sets: [] };
    const lines = data.text.split("\n");
    const kinds = { "+": "add", "-": "cut", "@": "hunk" };
    this.sets = data.sets;
    this.view.show(lines, lines.map((line) => kinds[line[0]] ?? ""));
    this.mark(null);
  }

  mark(from) {
    const weights = this.selection.weights();
    const marks = this.sets.map((set) => ["", "weak", "strong"][weights[set]]);
    this.view.mark(marks);
    const first = marks.includes("strong") ? marks.indexOf("strong") : marks.indexOf("weak");
    if (first >= 0 && from !== this) this.view.reveal(first);
  }
}

function changed(pass) {
  return pass.removed + pass.added > 0;
}
