/** The lives of one daemon on one data directory: begun, ended, and both seen. */
import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { type StartingDaemon, spawnDaemon } from '../daemons/bundle.ts'
import type { Lived } from './history.ts'

export interface Life {
  /** Undefined if it ended before it listened. */
  readonly url: Promise<string | undefined>
  /** Resolves once the process is gone and all it had sent has been seen. */
  end(by: 'SIGKILL' | 'SIGTERM'): Promise<void>
  /** Stops the process for so long, as a suspended machine does. */
  suspend(ms: number): Promise<void>
}

export interface DaemonLives {
  begin(): Life
  /** Leaves no process behind. */
  close(): Promise<void>
}

/** What a dead process had sent lies with the kernel, and is read within one turn of the event loop. */
const SETTLE_MS = 30
/** Ten seconds to drain, and a margin. */
const STOP_MS_MAX = 15_000

export interface DaemonLivesOptions {
  readonly profile: string
  readonly dataDir: string
  /** Where its log goes. */
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
