// The graph on a canvas: only what is in view is drawn, and text only where it can be read.

const READABLE = 0.42; // scale from which on names are drawn
const FAR = 0.2; // scale below which the graph is an overview
const DETAILED = 0.62; // scale from which on tensors on edges are named

class GraphView {
  constructor(model, selection) {
    this.model = model;
    this.selection = selection;
    this.canvas = byId("graph");
    this.colour = null; // colour of a node by number
    this.camera = new Camera(this.canvas, () => this.draw(), (x, y, add) => this.tapped(x, y, add));
    this.draw = oncePerFrame(() => this.drawNow());
    this.overview = new Overview(this);
    this.drawn = model.nodes.map((node, number) => number).filter((number) => model.nodes[number].at);
    this.edges = model.edges.map((edge) => ({ ...edge, bounds: bounds(edge.way) }));
    this.labelled = new Set(); // edges that name their tensor: the first of each
    const named = new Set();
    this.edges.forEach((edge, number) => {
      if (!named.has(edge.tensor)) this.labelled.add(number);
      named.add(edge.tensor);
    });
    const count = this.drawn.length.toLocaleString("en");
    this.canvas.setAttribute(
      "aria-label",
      `Graph of ${count} nodes. Arrow keys go from node to node, plus and minus zoom, Escape selects nothing.`,
    );
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    whenSchemeChanges(() => this.redraw());
    selection.addEventListener("change", (event) => this.changed(event));
    selection.addEventListener("matches", () => this.redraw());
  }

  paint(colour) {
    this.colour = colour;
    this.redraw();
  }

  /** Draw with the overview, because colours or marks have changed. */
  redraw() {
    this.overview.stale = true;
    this.draw();
  }

  fit() {
    this.camera.show(0, 0, ...this.model.size);
  }

  /** The whole graph if it can be read, else its beginning. */
  open() {
    this.fit();
    if (this.camera.scale >= READABLE || !this.drawn.length) return;
    const top = this.drawn.reduce((best, n) => (this.place(n)[1] < this.place(best)[1] ? n : best));
    const [x, y] = this.place(top);
    this.camera.goTo(x, y + this.canvas.clientHeight / 2 / 0.75 - 60, 0.75);
  }

  place(number) {
    return this.model.nodes[number].at;
  }

  changed(event) {
    const shown = [...this.selection.nodes].filter((number) => this.place(number));
    if (shown.length && event.from !== this) this.reveal(shown);
    this.redraw();
  }

  /** Bring nodes into view; several as a whole if they can be read then. */
  reveal(numbers) {
    const places = numbers.map((number) => this.place(number));
    const [left, top, right, bottom] = bounds(places);
    const view = this.camera.view;
    const inside = left > view[0] && right < view[2] && top > view[1] && bottom < view[3];
    if (inside && this.camera.scale >= READABLE) return;
    const [width, height] = this.camera.size;
    const near = Math.min(width / (right - left + 400), height / (bottom - top + 200));
    if (near >= READABLE) this.camera.scale = Math.min(this.camera.scale, near);
    const [x, y] = near >= READABLE ? [(left + right) / 2, (top + bottom) / 2] : places[0];
    this.camera.goTo(x, y, Math.min(near >= READABLE ? near : 1, 0.75));
  }

  /** The node at a point of the canvas, or null. */
  at(px, py) {
    const [x, y] = this.camera.toDrawing(px, py);
    const [width, height] = this.model.box;
    const reach = Math.max(0, 4 / this.camera.scale - height / 2);
    return (
      this.drawn.findLast((number) => {
        const [nx, ny] = this.place(number);
        return Math.abs(x - nx) <= width / 2 + reach && Math.abs(y - ny) <= height / 2 + reach;
      }) ?? null
    );
  }

  tapped(x, y, add) {
    this.canvas.focus();
    const number = this.at(x, y);
    if (number === null) {
      if (!add) this.selection.clear();
      return;
    }
    const nodes = add ? new Set(this.selection.nodes) : new Set();
    if (add && nodes.has(number)) nodes.delete(number);
    else nodes.add(number);
    this.selection.select(nodes, this);
  }

  hover(event) {
    if (this.camera.pointers.size) return;
    const number = this.at(event.offsetX, event.offsetY);
    this.canvas.classList.toggle("above", number !== null);
    this.canvas.title = number === null ? "" : this.model.label(number);
  }

  key(event) {
    const steps = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };
    const step = steps[event.key];
    if (step && event.shiftKey) this.camera.shift(step[0] * 80, step[1] * 80);
    else if (step) this.go(...step);
    else if (event.key === "+" || event.key === "=") this.camera.zoom(1.3);
    else if (event.key === "-") this.camera.zoom(1 / 1.3);
    else return;
    event.preventDefault();
  }

  /** Select the neighbour above or below along an edge, or the next node at the left or right. */
  go(dx, dy) {
    const current = [...this.selection.nodes].find((number) => this.place(number));
    if (current === undefined) {
      if (this.drawn.length) this.selection.select([this.at(...this.camera.size.map((s) => s / 2)) ?? this.drawn[0]]);
      return;
    }
    const [x, y] = this.place(current);
    let candidates;
    if (dy) {
      const neighbours = this.edges.filter((e) => (dy > 0 ? e.from : e.to) === current);
      candidates = neighbours.map((e) => (dy > 0 ? e.to : e.from));
    } else {
      const [, height] = this.model.box;
      candidates = this.drawn.filter((n) => Math.abs(this.place(n)[1] - y) < height && (this.place(n)[0] - x) * dx > 1);
    }
    const apart = (n) => Math.hypot(this.place(n)[0] - x, this.place(n)[1] - y);
    const next = candidates.sort((a, b) => apart(a) - apart(b))[0];
    if (next !== undefined) this.selection.select([next]);
  }

  // -- drawing

  drawNow() {
    const { context, width, height } = fitted(this.canvas);
    const camera = this.camera;
    context.fillStyle = styled("--page");
    context.fillRect(0, 0, width, height);
    context.save();
    context.translate(width / 2, height / 2);
    context.scale(camera.scale, camera.scale);
    context.translate(-camera.x, -camera.y);
    this.drawFrames(context);
    this.drawEdges(context, camera.view);
    this.drawNodes(context, camera.view);
    context.restore();
    this.overview.draw();
  }

  drawFrames(context) {
    context.lineWidth = Math.max(1, 1 / this.camera.scale);
    context.strokeStyle = styled("--edge");
    for (const [scope, x, y, width, height] of this.model.frames) {
      const { title, owner } = this.model.scopes[scope];
      context.fillStyle = styled("--panel");
      context.beginPath();
      context.roundRect(x, y, width, height, 10);
      context.fill();
      context.stroke();
      if (owner !== null && this.place(owner)) {
        const [ox, oy] = this.place(owner);
        context.setLineDash([6, 6]);
        context.beginPath();
        context.moveTo(ox + this.model.box[0] / 2, oy);
        context.lineTo(x, Math.min(Math.max(oy, y + 14), y + height));
        context.stroke();
        context.setLineDash([]);
      }
      if (this.camera.scale > 0.2) {
        context.fillStyle = styled("--soft");
        context.font = "13px system-ui, sans-serif";
        context.textBaseline = "middle";
        context.fillText(cut(title, Math.floor(width / 8)), x + 14, y + 16);
      }
    }
  }

  drawEdges(context, view) {
    const near = [];
    const [left, top, right, bottom] = view;
    this.edges.forEach((edge, number) => {
      const [x0, y0, x1, y1] = edge.bounds;
      if (x1 >= left - 20 && x0 <= right + 20 && y1 >= top - 20 && y0 <= bottom + 20) near.push([edge, number]);
    });
    const chosen = ([edge]) => this.selection.nodes.has(edge.from) || this.selection.nodes.has(edge.to);
    const groups = [
      [near.filter((one) => !chosen(one) && !one[0].captured), "--edge", 1, []],
      [near.filter((one) => !chosen(one) && one[0].captured), "--edge", 1, [5, 5]],
      [near.filter(chosen), "--accent", 1.8, []],
    ];
    for (const [edges, colour, weight, dash] of groups) {
      context.strokeStyle = context.fillStyle = styled(colour);
      context.lineWidth = Math.max(weight, (weight * 0.7) / this.camera.scale);
      context.globalAlpha = this.camera.scale < FAR && colour === "--edge" ? 0.6 : 1;
      context.setLineDash(dash);
      context.beginPath();
      for (const [edge] of edges) this.trace(context, edge.way);
      context.stroke();
      context.setLineDash([]);
      context.globalAlpha = 1;
      if (this.camera.scale >= READABLE) for (const [edge] of edges) this.arrow(context, edge.way);
    }
    if (this.camera.scale >= DETAILED) {
      for (const [edge, number] of near) if (this.labelled.has(number)) this.drawTensor(context, edge);
    }
  }

  trace(context, way) {
    const half = this.model.box[1] / 2;
    const last = way.length - 1;
    let [x, y] = [way[0][0], way[0][1] + half];
    context.moveTo(x, y);
    for (let i = 1; i <= last; i += 1) {
      const [nx, ny] = [way[i][0], way[i][1] - (i === last ? half : 0)];
      const bend = Math.min(40, (ny - y) / 2);
      context.bezierCurveTo(x, y + bend, nx, ny - bend, nx, ny);
      [x, y] = [nx, ny];
    }
  }

  arrow(context, way) {
    const [x, y] = way[way.length - 1];
    const tip = y - this.model.box[1] / 2;
    context.beginPath();
    context.moveTo(x, tip);
    context.lineTo(x - 4, tip - 7);
    context.lineTo(x + 4, tip - 7);
    context.fill();
  }

  drawTensor(context, edge) {
    const [name, type] = this.model.tensors[edge.tensor];
    const text = cut(type || name, 34);
    const [x, y] = edge.way[0];
    context.font = "10.5px system-ui, sans-serif";
    context.textBaseline = "middle";
    const width = context.measureText(text).width;
    const down = y + this.model.box[1] / 2 + 13;
    context.fillStyle = styled("--page");
    context.globalAlpha = 0.85;
    context.fillRect(x - width / 2 - 3, down - 7, width + 6, 14);
    context.globalAlpha = 1;
    context.fillStyle = styled("--kind");
    context.textAlign = "center";
    context.fillText(text, x, down);
    context.textAlign = "left";
  }

  drawNodes(context, view) {
    // Seen from afar a node is at least a dot, in a strong colour.
    const [width, height] = this.model.box.map((size) => Math.max(size, 2.5 / this.camera.scale));
    const [left, top, right, bottom] = view;
    const readable = this.camera.scale >= READABLE;
    const far = this.camera.scale < FAR;
    const colours = { ink: styled("--ink"), soft: styled("--soft"), accent: styled("--accent"), line: styled("--edge") };
    const { nodes, matches } = this.selection;
    context.textBaseline = "middle";
    for (const number of this.drawn) {
      const [x, y] = this.place(number);
      if (x + width < left || x - width > right || y + height < top || y - height > bottom) continue;
      const node = this.model.nodes[number];
      const plain = node.kind === "node";
      context.fillStyle = this.colour(number, far);
      context.beginPath();
      context.roundRect(x - width / 2, y - height / 2, width, height, plain ? 7 : height / 2);
      context.fill();
      const marked = nodes.has(number) || matches.has(number);
      if (marked || readable) {
        context.strokeStyle = marked ? colours.accent : colours.line;
        const weight = nodes.has(number) ? 3 : marked ? 2 : 1;
        context.lineWidth = marked ? Math.max(weight, weight / this.camera.scale) : 1;
        context.setLineDash(nodes.has(number) || !marked ? [] : [6, 3]);
        context.stroke();
        context.setLineDash([]);
      }
      if (readable) this.drawLabel(context, node, x, y, colours);
    }
  }

  drawLabel(context, node, x, y, colours) {
    const [width, height] = this.model.box;
    context.textAlign = "center";
    context.fillStyle = colours.ink;
    if (node.kind !== "node") {
      context.font = "12px system-ui, sans-serif";
      context.fillText(cut(node.name, 24), x, y - 6);
      context.fillStyle = colours.soft;
      context.font = "10px system-ui, sans-serif";
      const tensor = (node.kind === "input" ? node.outputs : node.inputs)[0];
      context.fillText(cut(this.model.tensors[tensor]?.[1] || node.kind, 32), x, y + 8);
    } else {
      context.font = "600 13px system-ui, sans-serif";
      context.fillText(cut(node.op, 22), x, y - height / 2 + 14);
      context.fillStyle = colours.soft;
      context.font = "10px system-ui, sans-serif";
      // Long names differ at their ends.
      const name = node.name.length > 30 ? `…${node.name.slice(-29)}` : node.name;
      context.fillText(name, x, y + height / 2 - 10, width - 8);
    }
    context.textAlign = "left";
  }
}

/** Left, top, right, bottom of some points. */
function bounds(points) {
  const xs = points.map(([x]) => x);
  const ys = points.map(([, y]) => y);
  return [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
}
