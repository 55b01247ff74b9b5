/** Runs the built bundle of a profile as a process, for the end-to-end tests. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

export const ROOT = resolve(import.meta.dirname, '../../..')
const START_MS_MAX = 60_000
const RUN_MS_MAX = 60_000

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

/** The bundle in a folder of `dist/`, or in a folder elsewhere with an absolute path. */
export const bundle = (profile: string): string => resolve(ROOT, 'dist', profile, 'sluice.mjs')

/** Makes a data directory with a configuration. `dispose` removes it. */
export function scratch(config = ''): { readonly dir: string; dispose(): void } {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-e2e-'))
  writeFileSync(join(dir, 'config.toml'), config, { mode: 0o600 })
  return { dir, dispose: () => rmSync(dir, { recursive: true, force: true }) }
}

/** The environment of a process, without provider keys and settings of the developer who runs the tests. */
export const environment = (extra: Record<string, string> = {}): Record<string, string> => ({
  PATH: process.env.PATH ?? '',
  HOME: tmpdir(),
  TMPDIR: tmpdir(),
  XDG_CACHE_HOME: join(ROOT, 'node_modules', '.cache'),
  NO_COLOR: '1',
  ...extra,
})

function launch(program: string, args: readonly string[], env: Record<string, string>): ChildProcess {
  return spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'pipe'], env: environment(env) })
}

/** Runs a command of the bundle to its end. Kills it after 60 s. */
export function run(profile: string, args: readonly string[], env: Record<string, string> = {}): Promise<Finished> {
  const child = launch(bundle(profile), args, env)
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

/** A daemon that has been started and may not listen yet. */
export interface StartingDaemon extends Omit<RunningDaemon, 'url'> {
  /** Resolves to its URL once it listens, or to undefined if it ends before. */
  readonly url: Promise<string | undefined>
}

export const spawnDaemon = (profile: string, dataDir: string, options: DaemonOptions = {}): StartingDaemon =>
  spawnProgram(bundle(profile), dataDir, options)

/** Runs the daemon of a file: of a bundle, or of a profile as it is in the sources. */
export function spawnProgram(program: string, dataDir: string, { args = [], env = {} }: DaemonOptions = {}): StartingDaemon {
  const child = launch(program, ['daemon', '--data-dir', dataDir, '--port', '0', ...args], env)
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

/** Resolves once the daemon listens. Rejects if it ends before or takes longer than 15 s. */
export async function startDaemon(profile: string, dataDir: string, options: DaemonOptions = {}): Promise<RunningDaemon> {
  const starting = spawnDaemon(profile, dataDir, options)
  const enough = new AbortController()
  const late = sleep(START_MS_MAX, 'late', { signal: enough.signal }).catch(() => undefined)
  const url = await Promise.race([starting.url, late])
  enough.abort()
  if (url === 'late') throw new Error(`The daemon did not listen within ${START_MS_MAX} ms: ${starting.stderr()}`)
  if (url === undefined) throw new Error(`The daemon ended with ${await starting.exited} before it listened: ${starting.stderr()}`)
  return { ...starting, url }
}

function collect(child: ChildProcess): { stdout: string; stderr: string } {
  const texts = { stdout: '', stderr: '' }
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (texts.stdout += text))
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (texts.stderr += text))
  return texts
}

/** Pairs a device. Resolves to its bearer token. */
export async function token(profile: string, dataDir: string, name = 'test', role: 'operator' | 'client' = 'operator'): Promise<string> {
  const { code, stdout, stderr } = await run(profile, ['pair', 'token', '--name', name, '--role', role, '--data-dir', dataDir])
  if (code !== 0) throw new Error(`"pair token" ended with ${code}: ${stderr}`)
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

/** Polls until the value is the expected one, for things that happen in another process. Rejects after ten seconds. */
export async function eventually<Value>(read: () => Promise<Value>, isExpected: (value: Value) => boolean): Promise<Value> {
  const end = performance.now() + 10_000
  for (;;) {
    const value = await read()
    if (isExpected(value)) return value
    if (performance.now() > end) throw new Error(`The expected value did not come within ten seconds; got ${JSON.stringify(value)}.`)
    await new Promise((resume) => setTimeout(resume, 25))
  }
}
