"""Whether a page can be used with a keyboard, a screen reader and weak eyes."""

import functools

from darkroom import ROOT

AXE = ROOT / "build" / "npm" / "node_modules" / "axe-core" / "axe.min.js"

# What axe-core calls label, button-name, image-alt, duplicate-id and color-contrast, for what is
# visible. Contrast is that of WCAG 2.2, 1.4.3.
FAULTS = r"""(() => {
  const faults = [], ids = new Set();
  const name = (e) => (e.getAttribute('aria-label') || e.alt || e.textContent.trim() ||
    [...e.querySelectorAll('img')].map((i) => i.alt).join('') ||
    [...(e.labels || [])].map((l) => l.textContent).join('')).trim();
  const numbers = (colour) => colour.match(/[\d.]+/g).map(Number);
  const light = (c) => { const [r, g, b] = c.map((v) => (v /= 255) <= 0.04045 ? v / 12.92
    : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const back = (e) => { for (; e; e = e.parentElement) {
    const c = numbers(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] === 1) return c; } return [255, 255, 255]; };
  for (const e of document.querySelectorAll('[id]')) {
    if (ids.has(e.id)) faults.push(`id ${e.id} exists twice`);
    ids.add(e.id);
  }
  for (const e of document.querySelectorAll('input,select,button,a,img,[role=img],[tabindex]'))
    if (e.checkVisibility() && !name(e)) faults.push(`no name: ${e.outerHTML.slice(0, 80)}`);
  for (const e of document.body.querySelectorAll('*')) {
    const text = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!text || !e.checkVisibility() || e.closest('.visually-hidden,noscript')) continue;
    const style = getComputedStyle(e);
    const a = light(numbers(e.closest('svg') ? style.fill : style.color).slice(0, 3));
    const b = light(back(e).slice(0, 3));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) faults.push(`contrast ${ratio.toFixed(2)}: ${e.outerHTML.slice(0, 80)}`);
  }
  return faults;
})()"""


@functools.cache
def axe():
    return AXE.read_text()


def check(page):
    """Fails if the page breaks a rule: those above, and with axe-core all of WCAG 2.2 A and AA and
    its good practice. scripts/setup installs axe-core."""
    assert not page.js(FAULTS)
    if not AXE.exists():
        return
    page.js(axe() + "; 0")
    result = page.js("axe.run(document, {resultTypes: ['violations', 'passes']}).then((r) => ({"
                     "faults: r.violations.flatMap((v) => v.nodes.map((n) => v.id + ': ' + n.html)),"
                     "passed: r.passes.map((p) => p.id)}))")
    assert not result["faults"], result["faults"]
    assert {"color-contrast", "document-title", "html-has-lang"} <= set(result["passed"])
