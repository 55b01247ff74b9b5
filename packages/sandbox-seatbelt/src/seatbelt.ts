/** The `seatbelt` backend: each command under sandbox-exec of macOS, by a profile of its own (§2.7). */
import { access, constants, mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { limitedWords } from '@sluice/sandbox-common'
import type { Sandbox } from '@sluice/sdk'
import { profile } from './profile.ts'

const TRIAL = { file: '/usr/bin/true', args: [], cwd: '/', env: {} }

export interface SeatbeltOptions {
  /** Shown to no command, wherever it lies, but for what is writable in it. */
  readonly dataDir: string
  readonly platform?: string
  /** The system's own, at a path only root can change. */
  readonly program?: string
}

export function seatbelt({ dataDir, platform = process.platform, program = '/usr/bin/sandbox-exec' }: SeatbeltOptions): Sandbox {
  const sandbox: Sandbox = {
    name: 'seatbelt',
    strength: 30,

    async probe(signal, run) {
      if (platform !== 'darwin') return { available: false, detail: 'it needs macOS' }
      const isThere = await access(program, constants.X_OK).then(
        () => true,
        () => false,
      )
      if (!isThere) return { available: false, detail: `${program} is missing` }
      const command = await sandbox.wrap(TRIAL, { writable: [], network: false })
      const { exitCode, stderr } = await run(command, signal).finally(() => command.release?.(run))
      if (exitCode !== 0)
        return { available: false, isInstalled: true, detail: `sandbox-exec fails: ${stderr.trim().split('\n')[0] || exitCode}` }
      return { available: true, detail: 'sandbox-exec; memory is not bounded, and what leaves its process group is not ended' }
    },

    async wrap(command, policy) {
      const own = await realpath(await mkdtemp(join(tmpdir(), 'sluice-command-')))
      const hidden = await realpath(dataDir).catch(() => dataDir)
      const text = profile({ ...policy, writable: [...policy.writable, own] }, hidden)
      return {
        file: program,
        args: ['-p', text, ...limitedWords(command, policy)],
        cwd: command.cwd,
        env: { ...command.env, TMPDIR: own },
        release: () => rm(own, { recursive: true, force: true }),
      }
    },
  }
  return sandbox
}
