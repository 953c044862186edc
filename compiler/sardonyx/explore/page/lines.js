// A long text of which only the lines in view are in the document.

const LINE_HEIGHT = 18;

class LineView {
  /** `pick(number)` is called for a line that was clicked, or chosen by the keyboard. */
  constructor(label, pick) {
    this.pick = pick;
    this.lines = [];
    this.marks = []; // by line: a class name or ""
    this.kinds = null; // by line: another class, of the text itself
    this.cursor = -1;
    this.found = -1;
    this.sheet = element("div", { class: "sheet" });
    this.scroller = element(
      "div",
      {
        class: "scroller",
        tabindex: "0",
        role: "listbox",
        "aria-label": label,
        scroll: () => this.draw(),
        click: (event) => this.clicked(event),
        keydown: (event) => this.key(event),
      },
      this.sheet,
    );
    this.strip = element("canvas", { class: "strip", "aria-hidden": "true", click: (event) => this.jump(event) });
    this.root = element("div", { class: "lines" }, this.scroller, this.strip);
    this.draw = oncePerFrame(() => this.drawNow());
    new ResizeObserver(() => {
      this.draw();
      this.drawStrip();
    }).observe(this.root);
    whenSchemeChanges(() => this.drawStrip());
  }

  show(lines, kinds = null) {
    this.lines = lines;
    this.kinds = kinds;
    this.marks = [];
    this.cursor = this.found = -1;
    this.sheet.style.height = `${lines.length * LINE_HEIGHT}px`;
    this.measure();
    this.scroller.scrollTop = 0;
    this.scroller.scrollLeft = 0;
    this.draw();
    this.drawStrip();
  }

  measure() {
    const widest = this.lines.reduce((most, line) => Math.max(most, line.length > most ? shortened(line).length : 0), 0);
    this.sheet.style.width = `calc(${widest + 2}ch + 5em)`;
  }

  /** Draw anew because the way of writing has changed. */
  refresh() {
    this.measure();
    this.draw();
  }

  mark(marks) {
    this.marks = marks;
    this.draw();
    this.drawStrip();
  }

  /** Scroll so that a line stands in the upper third, unless it is well in view. */
  reveal(number) {
    const top = number * LINE_HEIGHT;
    const { scrollTop, clientHeight } = this.scroller;
    if (top < scrollTop + LINE_HEIGHT || top > scrollTop + clientHeight - 3 * LINE_HEIGHT) {
      this.scroller.scrollTop = top - clientHeight / 3;
    }
  }

  /** Find a text from behind the line found last; gives the line's number or -1. */
  find(text, direction = 1) {
    const wanted = text.toLowerCase();
    const count = this.lines.length;
    for (let step = 1; step <= count; step += 1) {
      const number = (this.found + direction * step + 2 * count) % count;
      if (this.lines[number].toLowerCase().includes(wanted)) {
        this.found = number;
        this.reveal(number);
        this.draw();
        return number;
      }
    }
    this.found = -1;
    this.draw();
    return -1;
  }

  drawNow() {
    const { scrollTop, clientHeight } = this.scroller;
    const first = Math.max(0, Math.floor(scrollTop / LINE_HEIGHT) - 8);
    const last = Math.min(this.lines.length, Math.ceil((scrollTop + clientHeight) / LINE_HEIGHT) + 8);
    const rows = [];
    for (let number = first; number < last; number += 1) {
      const classes = ["row", this.kinds?.[number], this.marks[number]];
      if (number === this.cursor) classes.push("cursor");
      if (number === this.found) classes.push("found");
      rows.push(
        element(
          "div",
          {
            class: classes.filter(Boolean).join(" "),
            style: `top:${number * LINE_HEIGHT}px`,
            role: "option",
            "aria-selected": String(Boolean(this.marks[number])),
            "aria-posinset": number + 1,
            "aria-setsize": this.lines.length,
            "data-line": number,
          },
          element("i", { "aria-hidden": "true" }, String(number + 1)),
          ...coloured(shortened(this.lines[number])),
        ),
      );
    }
    this.sheet.replaceChildren(...rows);
  }

  drawStrip() {
    const { context, width, height } = fitted(this.strip);
    context.clearRect(0, 0, width, height);
    const colours = { strong: styled("--accent"), linked: styled("--kind"), weak: styled("--edge") };
    const unit = Math.max(2, height / Math.max(1, this.lines.length));
    for (const kind of ["weak", "linked", "strong"]) {
      context.fillStyle = colours[kind];
      let drawn = -1;
      for (let number = 0; number < this.marks.length; number += 1) {
        if (this.marks[number] !== kind) continue;
        const y = Math.floor((number / this.lines.length) * height);
        if (y === drawn) continue;
        drawn = y;
        context.fillRect(2, y, width - 3, unit);
      }
    }
  }

  jump(event) {
    const part = event.offsetY / this.strip.clientHeight;
    this.scroller.scrollTop = part * this.sheet.clientHeight - this.scroller.clientHeight / 2;
  }

  clicked(event) {
    const row = event.target.closest(".row");
    if (row && window.getSelection().isCollapsed) this.choose(Number(row.dataset.line));
  }

  choose(number) {
    this.cursor = number;
    this.draw();
    this.pick(number);
  }

  key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      this.cursor = Math.min(this.lines.length - 1, Math.max(0, this.cursor + step));
      this.reveal(this.cursor);
      this.draw();
    } else if (event.key === "Enter" && this.cursor >= 0) {
      this.pick(this.cursor);
    }
  }
}
