// SPDX-License-Identifier: Apache-2.0
// Runs the script of a page of ringtrain report over the few parts of a document that it uses.
//
//     node draw_page.js PAGE [FIGURE X]...
//
// Prints JSON: "charts", the markup that the script made; "tips", what it shows for a pointer at
// the co-ordinate X of each figure of lines; "marks", what it draws into that figure; "hidden",
// whether nothing is shown when the pointer has left.
"use strict";
const fs = require("fs"), vm = require("vm");

const [path, ...pointers] = process.argv.slice(2);
const page = fs.readFileSync(path, "utf8");
const element = (text) => ({textContent: text, innerHTML: "", hidden: true, style: {}});
const elements = {
    runs: element(page.match(/id="runs">(.*?)<\/script>/s)[1]), charts: element(""), tip: element("")
};
const listeners = {};
const document = {
    getElementById: (id) => elements[id],
    addEventListener: (name, listener) => { listeners[name] = listener; },
    documentElement: {addEventListener: (name, listener) => { listeners[name] = listener; }},
};
vm.runInNewContext(page.match(/<script>(.*?)<\/script>/s)[1],
                   {document, innerWidth: 1280, innerHeight: 800});

const tips = [], marks = [];
for (let i = 0; i < pointers.length; i += 2) {
    const mark = element("");
    const svg = {
        dataset: {lines: pointers[i]}, querySelector: () => mark,
        getBoundingClientRect: () => ({left: 100, width: 320}), // half of the view's 640
    };
    const target = {closest: (what) => what.startsWith("svg") ? svg : null};
    listeners.pointermove({target, clientX: 100 + pointers[i + 1] / 2, clientY: 50});
    tips.push(elements.tip.hidden ? null : elements.tip.innerHTML);
    marks.push(mark.innerHTML);
    listeners.pointerleave();
}
console.log(JSON.stringify({charts: elements.charts.innerHTML, tips, marks,
                            hidden: elements.tip.hidden}));
