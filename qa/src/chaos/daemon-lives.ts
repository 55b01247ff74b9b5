/** Starts and ends the processes of one daemon on one data directory, and records both. */
import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { type StartingDaemon, spawnDaemon } from '../daemons/bundle.ts'
import type { Lived } from './history.ts'

export interface Life {
  /** Resolves to undefined if the process ends before it listens. */
  readonly url: Promise<string | undefined>
  /** Resolves once the process has ended and everything that it sent has been recorded. */
  end(by: 'SIGKILL' | 'SIGTERM'): Promise<void>
  /** Stops the process for this time, like a suspended machine. */
  suspend(ms: number): Promise<void>
}

export interface DaemonLives {
  begin(): Life
  /** Kills the process that still runs. */
  close(): Promise<void>
}

/** Data that a dead process had sent waits in the kernel and is read within one tick of the event loop. */
const SETTLE_MS = 30
/** The daemon drains for at most ten seconds. */
const STOP_MS_MAX = 15_000

export interface DaemonLivesOptions {
  readonly profile: string
  readonly dataDir: string
  /** The file for its log. */
  readonly logFile: string
  readonly recorder: { see(event: Lived): void }
}

export function createDaemonLives({ profile, dataDir, logFile, recorder }: DaemonLivesOptions): DaemonLives {
  let current: StartingDaemon | undefined
  const killCurrent = () => current?.kill('SIGKILL')
  process.on('exit', killCurrent)

  return {
    begin() {
      const daemon = spawnDaemon(profile, dataDir)
      current = daemon
      recorder.see({ type: 'started', wallMs: Date.now() })
      return {
        url: daemon.url,
        async suspend(ms) {
          daemon.kill('SIGSTOP')
          await sleep(ms)
          daemon.kill('SIGCONT')
        },
        async end(by) {
          recorder.see({ type: 'ending', wallMs: Date.now() })
          daemon.kill(by)
          const code = await Promise.race([daemon.exited, sleep(STOP_MS_MAX, 'late' as const, { ref: false })])
          if (code === 'late') daemon.kill('SIGKILL')
          await daemon.exited
          await sleep(SETTLE_MS)
          current = undefined
          appendFileSync(logFile, daemon.stderr())
          recorder.see({ type: 'ended', by, code: code === 'late' ? null : code, wallMs: Date.now() })
        },
      }
    },
    async close() {
      killCurrent()
      await current?.exited
      process.off('exit', killCurrent)
    },
  }
}
