/** Runs the external `agent-browser` command in the sandbox. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError, type Host, MAIN_AGENT, type SpawnResult } from '@sluice/sdk'
import type { BrowserConfig } from '../config.ts'
import { findChromium } from '../native/find-chromium.ts'

export const PROGRAM = 'agent-browser'
export const INSTALL_HINT =
  'npm install -g agent-browser (with its install script, which makes it executable), and Chromium (Debian: apt install chromium); or set backend = "native" under [browser]'
const VERSION_MS_MAX = 15_000
const OUTPUT_BYTES_MAX = 1_048_576
/** Exit codes with which a sandbox's own program reports a missing or non-executable command. */
const NOT_FOUND_CODES = [126, 127]
/** Debian's Chromium would otherwise load its start page, which may replace the page that was opened. */
const FIRST_PAGE = 'about:blank'
const PATH_DEFAULT = '/usr/local/bin:/usr/bin:/bin'

/** The limits of one run of the command. */
export interface RunLimits {
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

/** The agent that runs the command, and the root of its workspace. */
export interface Place {
  readonly agent: string
  readonly root: string
}

interface RunOptions extends RunLimits {
  readonly place: Place
  /** Further variables for the command. */
  readonly env: Readonly<Record<string, string>>
}

const configIn = (home: string): string => join(home, 'config.json')

export class AgentCommand {
  readonly #host: Host
  readonly #config: BrowserConfig

  constructor(host: Host, config: BrowserConfig) {
    this.#host = host
    this.#config = config
  }

  /** Creates the home folder of an agent with an empty configuration, so that a file in the workspace cannot configure the command. */
  async prepareHome(agent: string): Promise<void> {
    const home = this.#homeOf(agent)
    await mkdir(home, { recursive: true, mode: 0o700 })
    await writeFile(configIn(home), '{}\n', { mode: 0o600 })
  }

  /** Runs `agent-browser --version`. Throws `upstream` when it fails, and otherwise like `run`. */
  async version(signal: AbortSignal): Promise<SpawnResult> {
    await this.prepareHome(MAIN_AGENT)
    const place = { agent: MAIN_AGENT, root: this.#homeOf(MAIN_AGENT) }
    const result = await this.run(['--version'], { place, env: {}, timeoutMs: VERSION_MS_MAX, signal })
    if (result.exitCode !== 0) throw new AppError('upstream', `${PROGRAM} --version ended with exit code ${result.exitCode}`)
    return result
  }

  /**
   * Runs the command and returns its result, whatever its exit code. Throws `unavailable` when the command is not installed,
   * `aborted`, and `upstream_timeout`.
   */
  async run(args: readonly string[], { place: { agent, root }, env, timeoutMs, signal }: RunOptions): Promise<SpawnResult> {
    const home = this.#homeOf(agent)
    const result = await this.#host
      .spawn({
        file: PROGRAM,
        args,
        cwd: root,
        env: { ...(await this.#environment(home)), ...env },
        policy: { writable: [...new Set([root, home])], network: true },
        timeoutMs,
        outputBytesMax: OUTPUT_BYTES_MAX,
        signal,
      })
      .catch((error: unknown) => {
        throw error instanceof AppError && error.code === 'not_found' ? notInstalled(error) : error
      })
    if (signal.aborted) throw new AppError('aborted', 'The action was aborted')
    if (result.timedOut) throw new AppError('upstream_timeout', `${PROGRAM} did not end within ${timeoutMs / 1000} s`)
    if (NOT_FOUND_CODES.includes(result.exitCode ?? 0)) throw notInstalled()
    return result
  }

  /**
   * Returns the home folder of the command, below the data directory and outside of every workspace. Each agent has its own, because
   * the command can write in it.
   */
  #homeOf(agent: string): string {
    return agent === MAIN_AGENT ? join(this.#host.dataDir, 'tool-browser') : join(this.#host.dataDir, 'tool-browser-agents', agent)
  }

  /** The command does not inherit the daemon's environment. */
  async #environment(home: string): Promise<Record<string, string>> {
    const { native_chrome_path, native_headless } = this.#config
    // Without a Chromium in the usual places, the command searches for one itself.
    const chromePath = native_chrome_path ?? (await findChromium().catch(() => undefined))
    return {
      HOME: home,
      PATH: process.env.PATH ?? PATH_DEFAULT,
      LANG: process.env.LANG ?? 'C.UTF-8',
      AGENT_BROWSER_SOCKET_DIR: home,
      AGENT_BROWSER_CONFIG: configIn(home),
      AGENT_BROWSER_ARGS: FIRST_PAGE,
      ...(chromePath !== undefined && { AGENT_BROWSER_EXECUTABLE_PATH: chromePath }),
      ...(!native_headless && { AGENT_BROWSER_HEADED: '1' }),
    }
  }
}

const notInstalled = (cause?: unknown) =>
  new AppError('unavailable', `${PROGRAM} is not installed, or not executable: ${INSTALL_HINT}`, { cause })
