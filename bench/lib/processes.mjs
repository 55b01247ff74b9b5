// Starts Node programs for a measurement and stops only these programs, by their process ids.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const READY_MAX_MS = 30_000
const STOP_MAX_MS = 12_000
const OUTPUT_CHARS_MAX = 1024 * 1024

/** Moves the shell into the control group `$0`, then runs the words after it. */
const ENTER = 'echo $$ > "$0/cgroup.procs" && exec "$@"'

const running = new Set()

/** Passes on only the search path: settings, keys and Node options of the caller must not affect a measurement. */
const environment = (scratch) => ({ PATH: process.env.PATH, HOME: scratch })

/**
 * Starts a child whose standard error goes to a file in the scratch directory. With `cgroup`, the folder of a control group, the
 * child is in that group before it becomes Node.
 */
export function startNode({ scratch, args, stdout = 'ignore', cgroup }) {
  const logFile = join(scratch, 'stderr.log')
  const log = openSync(logFile, 'a')
  const [program, ...words] = cgroup ? ['/bin/sh', '-c', ENTER, cgroup, process.execPath, ...args] : [process.execPath, ...args]
  const child = spawn(program, words, { cwd: scratch, env: environment(scratch), stdio: ['ignore', stdout, log] })
  closeSync(log)
  running.add(child)
  child.once('exit', () => running.delete(child))
  const ended = once(child, 'exit').then(([code, signal]) => {
    const lastLines = readFileSync(logFile, 'utf8').trim().split('\n').slice(-3).join(' | ')
    return new Error(`${args.slice(0, 2).join(' ')} ended with ${signal ?? code}: ${lastLines}`)
  })
  return { child, ended, stop: () => stop(child) }
}

/** Sends SIGTERM, then SIGKILL if the child is still running after 12 seconds. */
async function stop(child) {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  child.kill('SIGTERM')
  const grace = new AbortController()
  await Promise.race([gone, sleep(STOP_MAX_MS, undefined, { signal: grace.signal })])
  grace.abort()
  if (running.has(child)) child.kill('SIGKILL')
  await gone
}

/** Starts a server; resolves once it prints `listening on URL` on standard output. */
export async function startServer({ scratch, args, cgroup }) {
  const server = startNode({ scratch, args, stdout: 'pipe', cgroup })
  const ready = new AbortController()
  try {
    const url = await Promise.race([
      listeningUrl(server.child.stdout),
      server.ended.then((error) => Promise.reject(error)),
      sleep(READY_MAX_MS, undefined, { signal: ready.signal }).then(() => Promise.reject(new Error(`${args[0]} did not start listening`))),
    ])
    return { url, pid: server.child.pid, ended: server.ended, stop: server.stop }
  } catch (error) {
    await server.stop()
    throw error
  } finally {
    ready.abort()
  }
}

/** Continues to read after the line, so that a full pipe does not block the server. */
function listeningUrl(stdout) {
  return new Promise((resolve) => {
    let head = ''
    stdout.setEncoding('utf8').on('data', (text) => {
      if (head.length < OUTPUT_CHARS_MAX) head += text
      const [, url] = /listening on (http:\/\/\S+)\n/.exec(head) ?? []
      if (url) resolve(url)
    })
  })
}

/** Runs a program to its end and resolves to its output. */
export async function runNode({ scratch, args }) {
  const { child, ended } = startNode({ scratch, args, stdout: 'pipe' })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text) => {
    if (output.length < OUTPUT_CHARS_MAX) output += text
  })
  await once(child, 'close')
  if (child.exitCode !== 0) throw await ended
  return output.trim()
}

/** Returns the milliseconds from the start of a program to its end. Synchronous, so that this process does nothing else meanwhile. */
export function timeToExit({ scratch, args }) {
  const start = performance.now()
  const { status, error, stderr } = spawnSync(process.execPath, args, {
    cwd: scratch,
    env: environment(scratch),
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const tookMs = performance.now() - start
  if (error || status !== 0) throw error ?? new Error(`${args.join(' ')} ended with ${status}: ${stderr}`)
  return tookMs
}

/** Kills every child that is still running, at the end of the run. */
export function killAll() {
  for (const child of running) child.kill('SIGKILL')
}
