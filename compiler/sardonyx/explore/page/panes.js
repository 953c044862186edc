// The panes side by side, each with a choice of what it shows.

class Panes {
  constructor(model, selection) {
    this.model = model;
    this.selection = selection;
    this.root = byId("panes");
    this.views = this.choices();
  }

  choices() {
    const { model } = this;
    const found = new Map();
    for (const stage of model.stages) {
      found.set(stage.id, { title: `${stage.id}: ${stage.title}`, make: (context) => new StagePane(context, stage) });
    }
    if (model.passes.length) found.set("passes", { title: "passes: what each changed", make: (context) => new PassesPane(context) });
    if (model.memory) found.set("memory", { title: "memory: the plan over time", make: (context) => new MemoryPane(context) });
    if (model.kernels.length) found.set("kernels", { title: "kernels: all, with times", make: (context) => new KernelsPane(context) });
    if (model.times) found.set("times", { title: "times: nodes, the slowest first", make: (context) => new TimesPane(context) });
    return found;
  }

  add(id) {
    const bar = element("div", { class: "bar" });
    const pane = element("article", { class: "pane", "aria-label": id }, bar);
    const choice = element(
      "select",
      { "aria-label": "What this pane shows", change: () => this.fill(pane, bar, choice, close, choice.value) },
      ...[...this.views].map(([name, { title }]) => element("option", { value: name }, title)),
    );
    const close = element(
      "button",
      {
        type: "button",
        class: "close",
        title: "Close the pane",
        "aria-label": "Close the pane",
        click: () => {
          pane.view.close();
          pane.remove();
        },
      },
      "×",
    );
    this.root.append(pane);
    this.fill(pane, bar, choice, close, this.views.has(id) ? id : [...this.views.keys()][0]);
    return pane;
  }

  fill(pane, bar, choice, close, id) {
    pane.view?.close();
    choice.value = id;
    pane.dataset.view = id;
    pane.setAttribute("aria-label", id);
    pane.view = this.views.get(id).make({ model: this.model, selection: this.selection });
    bar.replaceChildren(choice, ...pane.view.tools, close);
    pane.replaceChildren(bar, pane.view.root);
  }

  /** The first view that no pane shows yet. */
  get unused() {
    const shown = [...this.root.children].map((pane) => pane.dataset.view);
    return [...this.views.keys()].find((id) => !shown.includes(id)) ?? [...this.views.keys()][0];
  }
}
