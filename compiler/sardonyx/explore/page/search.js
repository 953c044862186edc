// Finding nodes by name, operator, tensor or shape: every word has to occur.

const MOST_RESULTS = 200;

class Search {
  constructor(model, selection) {
    this.model = model;
    this.selection = selection;
    this.input = byId("query");
    this.list = byId("results");
    this.texts = model.nodes.map((node) => {
      const tensors = [...node.inputs, ...node.outputs].map((tensor) => model.tensors[tensor].join(" "));
      return [node.name, node.op, node.domain, node.kind, node.attributes, ...tensors].join("\n").toLowerCase();
    });
    this.found = [];
    this.at = -1;
    this.input.addEventListener("input", () => this.search());
    this.input.addEventListener("focus", () => this.open(this.found.length > 0));
    this.input.addEventListener("keydown", (event) => this.key(event));
    this.input.addEventListener("blur", () => this.open(false));
    this.list.addEventListener("pointerdown", (event) => event.preventDefault()); // keeps the focus
    this.list.addEventListener("click", (event) => {
      const item = event.target.closest("[data-number]");
      if (item) this.go(Number(item.dataset.number));
    });
  }

  search() {
    const words = this.input.value.toLowerCase().split(/\s+/).filter(Boolean);
    this.found = words.length
      ? this.texts.flatMap((text, number) => (words.every((word) => text.includes(word)) ? [number] : []))
      : [];
    // Those whose name or operator matches stand before those of which a tensor does.
    const direct = (number) => {
      const node = this.model.nodes[number];
      const own = `${node.op} ${node.name}`.toLowerCase();
      return words.every((word) => own.includes(word)) ? 0 : 1;
    };
    this.found.sort((a, b) => direct(a) - direct(b) || a - b);
    this.at = -1;
    this.selection.found(this.found);
    this.show(words.length > 0);
  }

  show(asked) {
    const items = this.found.slice(0, MOST_RESULTS).map((number, position) => {
      const node = this.model.nodes[number];
      const tensor = node.outputs[0] ?? node.inputs[0];
      return element(
        "li",
        { role: "option", id: `result-${position}`, "data-number": position, "aria-selected": "false" },
        element("b", {}, node.kind === "node" || node.kind === "constant" ? node.op : node.kind),
        element("span", { class: "name" }, node.name),
        element("span", { class: "type" }, cut(this.model.tensors[tensor]?.[1] ?? "", 40)),
      );
    });
    const more = this.found.length - MOST_RESULTS;
    const note = !this.found.length ? "nothing found" : more > 0 ? `and ${more} others` : "";
    if (note) items.push(element("li", { class: "note", role: "presentation" }, note));
    this.list.replaceChildren(...items);
    this.open(asked);
  }

  open(wanted) {
    this.list.hidden = !wanted;
    this.input.setAttribute("aria-expanded", String(wanted));
  }

  key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && this.found.length) {
      event.preventDefault();
      this.point((this.at + step + Math.min(this.found.length, MOST_RESULTS)) % Math.min(this.found.length, MOST_RESULTS));
    } else if (event.key === "Enter" && this.found.length) {
      this.go(Math.max(0, this.at));
      this.open(false);
    } else if (event.key === "Escape") {
      event.stopPropagation();
      if (this.list.hidden) {
        this.input.value = "";
        this.search();
        byId("graph").focus();
      }
      this.open(false);
    }
  }

  point(position) {
    this.list.querySelector('[aria-selected="true"]')?.setAttribute("aria-selected", "false");
    this.at = position;
    const item = byId(`result-${position}`);
    item?.setAttribute("aria-selected", "true");
    item?.scrollIntoView({ block: "nearest" });
    this.input.setAttribute("aria-activedescendant", `result-${position}`);
  }

  go(position) {
    this.point(position);
    this.selection.select([this.found[position]], this);
  }

  /** The next node found, or the one before. */
  next(direction) {
    if (!this.found.length) return;
    this.go((this.at + direction + this.found.length) % this.found.length);
    this.open(false);
  }
}
