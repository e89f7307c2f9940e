// Processes that are started, asked, watched, and ended.

import { execFile, execFileSync, fork, spawn } from "node:child_process";
import { openSync, readFileSync, readdirSync } from "node:fs";
import { createServer } from "node:net";

const tick = 1 / Number(execFileSync("getconf", ["CLK_TCK"]));

// Everything that was started and has not ended: it does not outlive us.
const running = new Set();

export async function leave(status) {
    await Promise.all([...running].map((child) => end(child, "SIGKILL")));
    process.exit(status);
}

for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => leave(1));

function watched(child, what) {
    running.add(child);
    child.on("exit", () => running.delete(child));
    child.on("error", (error) => {
        console.error(`peers: ${what}: ${error.message}`);
        leave(1);
    });
    return child;
}

// A program; what it says goes into NAME.out and NAME.log of the folder `dir`.
export function start(dir, name, command, args, env = {}) {
    const [out, log] = ["out", "log"].map((end) => openSync(`${dir}/${name}.${end}`, "a"));
    return watched(spawn(command, args, { stdio: ["ignore", out, log], env: { ...process.env, ...env } }), name);
}

// What a program says that is asked something.
export const ask = (command, args, env = {}) =>
    new Promise((resolve, reject) => {
        const done = (error, out, log) => (error ? reject(new Error(`${error.message} ${log}`)) : resolve(out));
        const child = execFile(command, args, { env: { ...process.env, ...env } }, done);
        running.add(child);
        child.on("exit", () => running.delete(child));
    });

export function end(child, signal = "SIGTERM") {
    if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
    const gone = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signal);
    return gone;
}

// A worker is a module of this folder in a process of its own; it offers functions by `serve`, and we call them.
export async function startWorker(dir, module, ...args) {
    const log = openSync(`${dir}/worker.log`, "a");
    const env = { ...process.env, NODE_ENV: "production", RESTATE_LOGGING: "ERROR" }; // which would write two lines for each call
    const child = watched(fork(new URL(module, import.meta.url), args, { env, stdio: ["ignore", log, log, "ipc"] }), module);
    const calls = new Map();
    let number = 0;
    const broken = () => {
        calls.forEach(({ reject }) => reject(new Error(`${module} has ended: ${readFileSync(`${dir}/worker.log`, "utf8").slice(-2000)}`)));
        calls.clear();
    };
    child.on("exit", broken);
    child.on("message", ({ id, result, error }) => {
        const { resolve, reject } = calls.get(id);
        calls.delete(id);
        if (error) reject(new Error(error));
        else resolve(result);
    });
    const call = (name, ...values) =>
        new Promise((resolve, reject) => {
            calls.set(++number, { resolve, reject });
            child.send({ id: number, name, values });
        });
    const ready = await call("start");
    return { child, pid: child.pid, call, ready };
}

export function serve(functions) {
    process.on("disconnect", () => process.exit(0));
    process.on("message", async ({ id, name, values }) => {
        try {
            process.send({ id, result: await functions[name](...values) });
        } catch (error) {
            process.send({ id, error: String(error?.stack ?? error) });
        }
    });
}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Waits for what has to be; `what` is for whom it does not come.
export async function until(what, condition, seconds = 120) {
    const end = performance.now() + seconds * 1000;
    while (performance.now() < end) {
        if (await condition()) return;
        await sleep(10);
    }
    throw new Error(`waited ${seconds} s: ${what}`);
}

export const freePort = () =>
    new Promise((resolve) => {
        const server = createServer().listen(0, "127.0.0.1", () => {
            const { port } = server.address();
            server.close(() => resolve(port));
        });
    });

// Everything after the name in /proc/PID/stat: the state first, which proc(5) counts as the third.
function stat(pid) {
    try {
        const text = readFileSync(`/proc/${pid}/stat`, "latin1");
        return text.slice(text.lastIndexOf(")") + 2).split(" ");
    } catch {
        return undefined; // it has just gone
    }
}

export function childrenOf(pid) {
    return readdirSync("/proc").filter((name) => /^\d+$/.test(name) && stat(name)?.[1] === String(pid)).map(Number);
}

// CPU seconds of a process, with those of its children that have ended.
export function cpuSeconds(pid) {
    const fields = stat(pid);
    return fields ? fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) * tick : 0;
}

// Of a process and of its children: a database server's, whose sessions are processes.
export const cpuOfFamily = (pid) => [pid, ...childrenOf(pid)].reduce((sum, one) => sum + cpuSeconds(one), 0);

function memory(pid, field) {
    try {
        return Number(new RegExp(`^${field}:\\s+(\\d+)`, "m").exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1] ?? 0) / 1024;
    } catch {
        return 0;
    }
}

export const residentMib = (pid) => memory(pid, "VmRSS");
export const peakMib = (pid) => memory(pid, "VmHWM");

// A database server's: what each process has for itself, and what they share once.
export function familyMib(pid) {
    const family = [pid, ...childrenOf(pid)];
    return family.reduce((sum, one) => sum + memory(one, "RssAnon"), 0) + Math.max(...family.map((one) => memory(one, "RssShmem")));
}
