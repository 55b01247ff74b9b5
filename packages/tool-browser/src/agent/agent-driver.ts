/** `agent_browser`: the external command, in the sandbox, its browser behind the same egress proxy. */
import { randomUUID } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PerClient, signalScope } from '@sluice/kit'
import {
  AppError,
  type ClientId,
  errorText,
  type Finding,
  type Host,
  type SpawnResult,
  sha256Hex,
  type ToolContext,
  unconfinedNote,
} from '@sluice/sdk'
import type { Action, BrowserAction } from '../actions.ts'
import type { OptionalDriver } from '../backend.ts'
import type { BrowserConfig } from '../config.ts'
import { EgressProxy } from '../egress/egress-proxy.ts'
import type { Pass } from '../egress/pass.ts'
import { findChromium } from '../native/find-chromium.ts'
import { IMAGE_BYTES_MAX, imagePath, saveImage } from '../save-image.ts'
import type { UrlGuard } from '../url-guard.ts'
import { readReply } from './read-reply.ts'
import { verbArgs } from './verb-args.ts'

const PROGRAM = 'agent-browser'
const INSTALL =
  'npm install -g agent-browser (with its install script, which makes it executable), and Chromium (Debian: apt install chromium); or set backend = "native" under [browser]'
const ACTION_MS_MAX = 60_000
const CHECK_MS_MAX = 15_000
const CLOSE_MS_MAX = 5000
const OUTPUT_BYTES_MAX = 1_048_576
const SESSIONS_MAX = 16
const UNCONFINED = 'none'
const NOT_FOUND_CODES = [126, 127]
/** Debian's Chromium has a start page, which otherwise arrives late and takes the place of the page that was opened. */
const FIRST_PAGE = 'about:blank'
const PATH_DEFAULT = '/usr/local/bin:/usr/bin:/bin'

type AgentHost = Pick<Host, 'spawn' | 'workspace' | 'dataDir' | 'log'>
type AgentConfig = Pick<BrowserConfig, 'session_name' | 'native_chrome_path' | 'native_headless'>

interface Session {
  readonly name: string
  readonly pass: Pass
}

export class AgentDriver implements OptionalDriver {
  readonly #host: AgentHost
  readonly #config: AgentConfig
  readonly #guard: UrlGuard
  #proxy: Promise<EgressProxy> | undefined
  readonly #sessions = new PerClient<Promise<Session>>('browser sessions', SESSIONS_MAX)

  constructor(host: AgentHost, config: AgentConfig, guard: UrlGuard) {
    this.#host = host
    this.#config = config
    this.#guard = guard
  }

  async run(given: Action, { client, signal }: ToolContext): Promise<string> {
    const action = given as BrowserAction
    if (action.action === 'open') await this.#guard.addresses(this.#guard.page(action.url).hostname, signal)
    // Below the workspace, the one folder it and we both reach.
    const shot = `.${randomUUID()}.png`
    const path = action.action === 'screenshot' ? imagePath(action.path) : ''
    const args = verbArgs(action, join(this.#host.workspace.root, shot))
    const session = await this.#sessionOf(client, signal)
    try {
      const result = await this.#command(session, args, { timeoutMs: ACTION_MS_MAX, signal })
      const answer = readReply(action.action, result)
      if (action.action === 'close') await this.#forget(client)
      if (action.action === 'open') await this.#proveProxied(client, session, signal)
      if (action.action !== 'screenshot') return withNotes(answer, session, result)
      return withNotes(`The screenshot is in ${await this.#keep(shot, path)}.`, session, result)
    } catch (error) {
      const [refusal] = session.pass.takeRefusals()
      throw refusal && !signal.aborted ? new AppError('forbidden', refusal.why, { cause: error }) : error
    }
  }

  async unusable(signal: AbortSignal): Promise<string | undefined> {
    try {
      await this.#prepareHome()
      const { exitCode, sandbox } = await this.#spawn(['--version'], {}, { timeoutMs: CHECK_MS_MAX, signal })
      if (exitCode !== 0) return `${PROGRAM} --version ended with ${exitCode}`
      // Its pages live in a background process from one command to the next.
      return sandbox === UNCONFINED ? undefined : `the sandbox '${sandbox}' ends its browser with each command`
    } catch (error) {
      return errorText(error)
    }
  }

  async check(signal: AbortSignal): Promise<readonly Finding[]> {
    try {
      await this.#prepareHome()
      const { stdout, exitCode } = await this.#spawn(['--version'], {}, { timeoutMs: CHECK_MS_MAX, signal })
      if (exitCode !== 0) return [{ status: 'fail', detail: `${PROGRAM} --version ended with ${exitCode}`, fix: INSTALL }]
      return [{ status: 'ok', detail: stdout.trim() || `${PROGRAM} is there` }]
    } catch (error) {
      return [{ status: 'fail', detail: errorText(error).replace(`: ${INSTALL}`, ''), fix: INSTALL }]
    }
  }

  async close(): Promise<void> {
    using limit = signalScope([], CLOSE_MS_MAX)
    const open = this.#sessions.clear()
    await Promise.allSettled(
      open.map(async (session) => this.#command(await session, ['close'], { timeoutMs: CLOSE_MS_MAX, signal: limit.signal })),
    )
    const proxy = this.#proxy
    this.#proxy = undefined
    await (await proxy?.catch(() => undefined))?.close()
  }

  /** Makes what the command shall find there: else a file in the workspace could change how it runs. */
  async #prepareHome(): Promise<void> {
    await mkdir(this.#home, { recursive: true, mode: 0o700 })
    await writeFile(this.#configFile, '{}\n', { mode: 0o600 })
  }

  get #configFile(): string {
    return join(this.#home, 'config.json')
  }

  get #home(): string {
    return join(this.#host.dataDir, 'tool-browser')
  }

  #sessionOf(client: ClientId, signal: AbortSignal): Promise<Session> {
    const known = this.#sessions.find(client)
    if (known) return known
    const opening = this.#openSession(client, signal)
    const dropped = this.#sessions.keep(client, opening)
    if (dropped) void this.#drop(dropped)
    void opening.catch(() => this.#sessions.forget(client))
    return opening
  }

  async #openSession(client: ClientId, signal: AbortSignal): Promise<Session> {
    await this.#prepareHome()
    this.#proxy ??= EgressProxy.start(this.#guard)
    const proxy = await this.#proxy
    const name = `${this.#config.session_name ?? 'sluice'}-${sha256Hex(client).slice(0, 16)}`
    const session = { name, pass: proxy.issue() }
    // One of this name that is left from before has another proxy, or none.
    try {
      // The first command of all starts its background process, which may take long on a busy machine.
      await this.#command(session, ['close'], { timeoutMs: ACTION_MS_MAX, signal })
    } catch (error) {
      proxy.revoke(session.pass)
      throw error
    }
    return session
  }

  /** A command that went around the proxy went around every check: its browser is closed again. */
  async #proveProxied(client: ClientId, session: Session, signal: AbortSignal): Promise<void> {
    if (session.pass.uses > 0) return
    await this.#command(session, ['close'], { timeoutMs: CLOSE_MS_MAX, signal })
    await this.#forget(client)
    throw new AppError('unavailable', `this ${PROGRAM} does not load pages through the proxy it is given; update it: ${INSTALL}`)
  }

  async #drop(opening: Promise<Session>): Promise<void> {
    const session = await this.#revoked(opening)
    if (!session) return
    using limit = signalScope([], CLOSE_MS_MAX)
    await this.#command(session, ['close'], { timeoutMs: CLOSE_MS_MAX, signal: limit.signal }).catch(() => undefined)
  }

  #forget(client: ClientId): Promise<Session | undefined> {
    return this.#revoked(this.#sessions.forget(client))
  }

  /** The session, which has no way out any more. */
  async #revoked(opening: Promise<Session> | undefined): Promise<Session | undefined> {
    const session = await opening?.catch(() => undefined)
    if (session) (await this.#proxy)?.revoke(session.pass)
    return session
  }

  async #keep(shot: string, path: string): Promise<string> {
    const { workspace } = this.#host
    try {
      return await saveImage(this.#host)(await workspace.read(shot, { bytesMax: IMAGE_BYTES_MAX }), path)
    } finally {
      await workspace.remove(shot).catch(() => undefined)
    }
  }

  async #command({ name, pass }: Session, args: readonly string[], limits: Limits) {
    const proxy = await this.#proxy
    const env = {
      AGENT_BROWSER_PROXY: proxy?.url ?? '',
      AGENT_BROWSER_PROXY_USERNAME: pass.username,
      AGENT_BROWSER_PROXY_PASSWORD: pass.password,
      // Without the exception Chromium goes to loopback addresses by itself.
      AGENT_BROWSER_PROXY_BYPASS: '<-loopback>',
    }
    return this.#spawn(['--session', name, ...args, '--json'], env, limits)
  }

  async #spawn(args: readonly string[], extraEnv: Readonly<Record<string, string>>, { timeoutMs, signal }: Limits) {
    const { root } = this.#host.workspace
    const { env } = process
    const { native_chrome_path, native_headless } = this.#config
    // Where there is none, the command may know of one.
    const chromePath = native_chrome_path ?? (await findChromium().catch(() => undefined))
    const result = await this.#host
      .spawn({
        file: PROGRAM,
        args,
        cwd: root,
        env: {
          HOME: this.#home,
          PATH: env.PATH ?? PATH_DEFAULT,
          LANG: env.LANG ?? 'C.UTF-8',
          AGENT_BROWSER_SOCKET_DIR: this.#home,
          AGENT_BROWSER_CONFIG: this.#configFile,
          AGENT_BROWSER_ARGS: FIRST_PAGE,
          ...(chromePath !== undefined && { AGENT_BROWSER_EXECUTABLE_PATH: chromePath }),
          ...(!native_headless && { AGENT_BROWSER_HEADED: '1' }),
          ...extraEnv,
        },
        policy: { writable: [root, this.#home], network: true },
        timeoutMs,
        outputBytesMax: OUTPUT_BYTES_MAX,
        signal,
      })
      .catch((error: unknown) => {
        throw error instanceof AppError && error.code === 'not_found' ? notInstalled(error) : error
      })
    if (signal.aborted) throw new AppError('aborted', 'the action was aborted')
    if (result.timedOut) throw new AppError('upstream_timeout', `${PROGRAM} did not end within ${timeoutMs / 1000} s`)
    // What a sandbox's own program says of one that is not there.
    if (NOT_FOUND_CODES.includes(result.exitCode ?? 0)) throw notInstalled()
    return result
  }
}

const notInstalled = (cause?: unknown) =>
  new AppError('unavailable', `${PROGRAM} is not installed, or not executable: ${INSTALL}`, { cause })

interface Limits {
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

const withNotes = (answer: string, { pass }: Session, result: SpawnResult): string =>
  [answer, ...new Set(pass.takeRefusals().map(({ why }) => `[refused: ${why}]`)), unconfinedNote(result)].filter(Boolean).join('\n')
