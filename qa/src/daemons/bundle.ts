/** Runs the built bundle of a profile as a process, for the end-to-end tests. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

export const ROOT = resolve(import.meta.dirname, '../../..')
const START_MS_MAX = 15_000
const RUN_MS_MAX = 30_000

export interface Finished {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface RunningDaemon {
  readonly url: string
  readonly dataDir: string
  readonly pid: number
  readonly stdout: () => string
  readonly stderr: () => string
  readonly exited: Promise<number | null>
  kill(signal: NodeJS.Signals): void
}

/** Of a folder in `dist/`, or of a folder elsewhere by its absolute path. */
export const bundle = (profile: string): string => resolve(ROOT, 'dist', profile, 'sluice.mjs')

/** A data directory with a configuration, removed by `dispose`. */
export function scratch(config = ''): { readonly dir: string; dispose(): void } {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-e2e-'))
  writeFileSync(join(dir, 'config.toml'), config, { mode: 0o600 })
  return { dir, dispose: () => rmSync(dir, { recursive: true, force: true }) }
}

/** What a process needs, without provider keys or settings of the person who runs the tests. */
export const environment = (extra: Record<string, string> = {}): Record<string, string> => ({
  PATH: process.env.PATH ?? '',
  HOME: tmpdir(),
  TMPDIR: tmpdir(),
  XDG_CACHE_HOME: join(ROOT, 'node_modules', '.cache'),
  NO_COLOR: '1',
  ...extra,
})

function launch(profile: string, args: readonly string[], env: Record<string, string>): ChildProcess {
  return spawn(process.execPath, [bundle(profile), ...args], { stdio: ['ignore', 'pipe', 'pipe'], env: environment(env) })
}

export function run(profile: string, args: readonly string[], env: Record<string, string> = {}): Promise<Finished> {
  const child = launch(profile, args, env)
  const texts = collect(child)
  const timer = setTimeout(() => child.kill('SIGKILL'), RUN_MS_MAX)
  return new Promise((done, fail) => {
    child.on('error', fail)
    child.on('close', (code) => {
      clearTimeout(timer)
      done({ code, stdout: texts.stdout, stderr: texts.stderr })
    })
  })
}

export interface DaemonOptions {
  readonly args?: readonly string[]
  readonly env?: Record<string, string>
}

/** A daemon that may not listen yet, and may never. */
export interface StartingDaemon extends Omit<RunningDaemon, 'url'> {
  /** Where it listens, once it says so; undefined if it ends before. */
  readonly url: Promise<string | undefined>
}

export function spawnDaemon(profile: string, dataDir: string, { args = [], env = {} }: DaemonOptions = {}): StartingDaemon {
  const child = launch(profile, ['daemon', '--data-dir', dataDir, '--port', '0', ...args], env)
  const texts = collect(child)
  const exited = new Promise<number | null>((done) => child.on('close', (code) => done(code)))
  const url = new Promise<string | undefined>((found) => {
    child.stdout?.on('data', () => {
      const [, match] = /listening on (http:\/\/\S+)/.exec(texts.stdout) ?? []
      if (match) found(match)
    })
    void exited.then(() => found(undefined))
  })
  return {
    url,
    dataDir,
    pid: child.pid ?? 0,
    stdout: () => texts.stdout,
    stderr: () => texts.stderr,
    exited,
    kill: (signal) => void child.kill(signal),
  }
}

/** Resolves once the daemon says where it listens. */
export async function startDaemon(profile: string, dataDir: string, options: DaemonOptions = {}): Promise<RunningDaemon> {
  const starting = spawnDaemon(profile, dataDir, options)
  const enough = new AbortController()
  const late = sleep(START_MS_MAX, 'late', { signal: enough.signal }).catch(() => undefined)
  const url = await Promise.race([starting.url, late])
  enough.abort()
  if (url === 'late') throw new Error(`no daemon after ${START_MS_MAX} ms: ${starting.stderr()}`)
  if (url === undefined) throw new Error(`the daemon ended with ${await starting.exited}: ${starting.stderr()}`)
  return { ...starting, url }
}

function collect(child: ChildProcess): { stdout: string; stderr: string } {
  const texts = { stdout: '', stderr: '' }
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (texts.stdout += text))
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (texts.stderr += text))
  return texts
}

export async function token(profile: string, dataDir: string, name = 'test', role: 'operator' | 'client' = 'operator'): Promise<string> {
  const { code, stdout, stderr } = await run(profile, ['pair', 'token', '--name', name, '--role', role, '--data-dir', dataDir])
  if (code !== 0) throw new Error(`pair token ended with ${code}: ${stderr}`)
  return stdout.trim()
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: Record<string, unknown>
}

export async function post(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Answer> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  return { status: response.status, headers: response.headers, body: (await response.json()) as Record<string, unknown> }
}

/** Asks again until the answer suits or ten seconds are over; for what happens soon, but on nobody's clock. */
export async function eventually<Value>(ask: () => Promise<Value>, suits: (value: Value) => boolean): Promise<Value> {
  const end = performance.now() + 10_000
  for (;;) {
    const value = await ask()
    if (suits(value)) return value
    if (performance.now() > end) throw new Error(`still ${JSON.stringify(value)} after ten seconds`)
    await new Promise((resume) => setTimeout(resume, 25))
  }
}
