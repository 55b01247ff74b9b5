/** The `seatbelt` backend: runs each command under sandbox-exec of macOS with its own profile. */
import { access, constants, mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { limitedCommand } from '@sluice/sandbox-common'
import type { ProcessCommand, RunBare, Sandbox, SandboxPolicy, SandboxProbe, WrappedCommand } from '@sluice/sdk'
import { seatbeltProfile } from './seatbelt-profile.ts'

const TRIAL = { file: '/usr/bin/true', args: [], cwd: '/', env: {} }

export interface SeatbeltOptions {
  readonly platform?: string
  /** The path of sandbox-exec, by default that of the system, which only root can change. */
  readonly program?: string
}

export class SeatbeltSandbox implements Sandbox {
  readonly name = 'seatbelt'
  readonly strength = 30
  readonly #dataDir: string
  readonly #platform: string
  readonly #program: string

  /** No command sees the data directory, except writable folders inside it. */
  constructor(dataDir: string, { platform = process.platform, program = '/usr/bin/sandbox-exec' }: SeatbeltOptions = {}) {
    this.#dataDir = dataDir
    this.#platform = platform
    this.#program = program
  }

  async probe(signal: AbortSignal, run: RunBare): Promise<SandboxProbe> {
    if (this.#platform !== 'darwin') return { available: false, detail: 'it needs macOS' }
    const isInstalled = await access(this.#program, constants.X_OK).then(
      () => true,
      () => false,
    )
    if (!isInstalled) return { available: false, detail: `${this.#program} is missing` }
    const command = await this.wrap(TRIAL, { writable: [], network: false })
    const { exitCode, stderr } = await run(command, signal).finally(() => command.release?.(run))
    if (exitCode !== 0)
      return { available: false, isInstalled: true, detail: `sandbox-exec fails: ${stderr.trim().split('\n')[0] || exitCode}` }
    return { available: true, detail: 'sandbox-exec; memory is not bounded, and processes that leave their group are not ended' }
  }

  async wrap(command: ProcessCommand, policy: SandboxPolicy): Promise<WrappedCommand> {
    const temporary = await realpath(await mkdtemp(join(tmpdir(), 'sluice-command-')))
    const hidden = await realpath(this.#dataDir).catch(() => this.#dataDir)
    const profile = seatbeltProfile({ ...policy, writable: [...policy.writable, temporary] }, hidden)
    return {
      file: this.#program,
      args: ['-p', profile, ...limitedCommand(command, policy)],
      cwd: command.cwd,
      env: { ...command.env, TMPDIR: temporary },
      release: () => rm(temporary, { recursive: true, force: true }),
    }
  }
}
