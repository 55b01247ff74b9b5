/** The test bench of the sandbox rules: a workspace, protected folders outside it, and ways to run commands. */
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ProcessCommand, Sandbox, SandboxPolicy } from '@sluice/sdk'
import { expect } from 'vitest'
import type { LeftOut } from '../rules.ts'
import { runBare } from '../run-bare.ts'
import { within } from '../within.ts'

/** The secret content of protected files. */
export const CANARY = 'canary-that-stays-where-it-is'
const TIMEOUT_MS = 50_000
/** How long a process that left the process group may keep the output pipes open. */
const PIPE_DRAIN_MS = 250
const OUTPUT_CHARS_MAX = 100_000

/** A sandbox backend under test. */
export interface SandboxSubject {
  readonly name: string
  /** A backend whose probe passes on this machine. */
  create(): Sandbox
  /** Rules this backend does not keep, each with its reason. */
  readonly except?: readonly LeftOut[]
}

/** The result of a command. */
export interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** How a command runs in the sandbox. */
export interface RunOptions {
  readonly policy?: Partial<SandboxPolicy>
  readonly env?: Readonly<Record<string, string>>
  readonly args?: readonly string[]
  readonly input?: string
}

/** The folders of a rule and ways to run commands in the sandbox. */
export interface SandboxBench {
  /** A folder whose name contains a space, a quote and a dollar sign. */
  readonly workspace: string
  /** Folders next to the workspace and in the home directory; each holds a file `canary` that only its owner may read. */
  readonly outside: readonly string[]
  /** Runs a script with `sh` in the sandbox, in the workspace. */
  run(script: string, options?: RunOptions): Promise<Ran>
  /** Runs any program in the sandbox, in the workspace. */
  execute(file: string, args: readonly string[], options?: RunOptions): Promise<Ran>
  /** Runs a script with `perl` in the sandbox; throws on a machine without perl. */
  runPerl(script: string, args: readonly string[], policy?: Partial<SandboxPolicy>): Promise<Ran>
  /** Starts a script with `sh` in the sandbox; `stop` kills its process group and releases the sandbox. */
  start(script: string, policy?: Partial<SandboxPolicy>): Promise<{ stop(): Promise<void> }>
  /** Throws if anything outside has changed. */
  expectUntouched(): void
}

/** Runs a rule in a new bench. */
export type InBench = (rule: (bench: SandboxBench) => Promise<void>) => () => Promise<void>

/** Returns a function that runs a rule in a new bench and removes its folders. */
export const createSandboxBench =
  ({ create }: SandboxSubject): InBench =>
  (rule) =>
  async () => {
    const base = realpathSync(mkdtempSync(join(tmpdir(), 'sandbox-')))
    const home = realpathSync(mkdtempSync(join(existsSync(homedir()) ? homedir() : tmpdir(), '.sandbox-conformance-')))
    const workspace = join(base, "work 'space $1")
    const outside = [join(base, 'outside'), home]
    mkdirSync(workspace)
    mkdirSync(outside[0] ?? '')
    for (const folder of outside) writeFileSync(join(folder, 'canary'), CANARY, { mode: 0o600 })
    try {
      await rule(benchOf({ create, workspace, outside }))
    } finally {
      rmSync(base, { recursive: true, force: true })
      rmSync(home, { recursive: true, force: true })
    }
  }

function benchOf({ create, workspace, outside }: Pick<SandboxSubject, 'create'> & { workspace: string; outside: string[] }): SandboxBench {
  const sandbox = create()
  const attributes = attributesOf(outside)
  const wrap = (file: string, args: readonly string[], { env = {}, policy = {} }: RunOptions = {}) => {
    const command: ProcessCommand = {
      file,
      args,
      cwd: workspace,
      env: { PATH: process.env.PATH ?? '/usr/bin:/bin', HOME: workspace, ...env },
    }
    return sandbox.wrap(command, { writable: [workspace], network: false, ...policy })
  }
  const execute = async (file: string, args: readonly string[], options: RunOptions = {}): Promise<Ran> => {
    const command = await wrap(file, args, options)
    try {
      return await runToEnd(command, options.input)
    } finally {
      await command.release?.(runBare)
    }
  }
  return {
    workspace,
    outside,
    execute,
    run: (script, options = {}) => execute('sh', ['-c', script, 'sh', ...(options.args ?? [])], options),
    async runPerl(script, args, policy = {}) {
      const ran = await execute('perl', ['-e', script, ...args], { policy })
      if (ran.code === 127) throw new Error('The sandbox has no perl to probe it with; make perl available inside')
      return ran
    },
    async start(script, policy = {}) {
      const command = await wrap('sh', ['-c', script], { policy })
      const child = spawn(command.file, command.args, { cwd: command.cwd, env: command.env, detached: true, stdio: 'ignore' })
      const ended = new Promise((resolve) => child.once('close', resolve))
      return {
        async stop() {
          if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
          await ended
          await command.release?.(runBare)
        },
      }
    },
    expectUntouched() {
      for (const folder of outside) {
        expect(readdirSync(folder)).toEqual(['canary'])
        expect(readFileSync(join(folder, 'canary'), 'utf8')).toBe(CANARY)
      }
      expect(attributesOf(outside)).toEqual(attributes)
    },
  }
}

/** Returns the modes and owners of the folders, and those and the times of their files. */
const attributesOf = (outside: readonly string[]) =>
  outside.map((folder) => {
    const [own, canary] = [statSync(folder), statSync(join(folder, 'canary'))]
    return [own.mode, own.uid, own.gid, canary.mode, canary.uid, canary.gid, canary.mtimeMs]
  })

function runToEnd(command: ProcessCommand, input = ''): Promise<Ran> {
  const { promise, resolve, reject } = Promise.withResolvers<Ran>()
  const child = spawn(command.file, command.args, { cwd: command.cwd, env: command.env, detached: true, stdio: 'pipe' })
  const killGroup = () => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    } catch {
      // The group has already ended.
    }
  }
  const timer = setTimeout(killGroup, TIMEOUT_MS)
  const output = { stdout: '', stderr: '' }
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].on('data', (chunk: Buffer) => {
      if (output[stream].length < OUTPUT_CHARS_MAX) output[stream] += chunk
    })
  }
  child.stdin.on('error', () => undefined)
  child.stdin.end(input)
  child.on('error', reject)
  // The daemon does the same: the rest of the process group ends with the command, and a process that left it is not waited for.
  const closed = new Promise((resolve) => child.once('close', resolve))
  child.once('exit', async (code) => {
    clearTimeout(timer)
    killGroup()
    await within(PIPE_DRAIN_MS, closed)
    for (const stream of [child.stdout, child.stderr]) stream.destroy()
    resolve({ code, ...output })
  })
  return promise
}
