/** The backend `agent_browser`: one session of the external command per client, whose browser uses the egress proxy. */
import { randomUUID } from 'node:crypto'
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
  type Workspace,
} from '@sluice/sdk'
import type { Action, BrowserAction } from '../actions.ts'
import type { OptionalDriver } from '../backend.ts'
import type { BrowserConfig } from '../config.ts'
import { EgressProxy } from '../egress/egress-proxy.ts'
import type { Pass } from '../egress/pass.ts'
import { IMAGE_BYTES_MAX, imagePath, saveImage } from '../save-image.ts'
import type { UrlGuard } from '../url-guard.ts'
import { AgentCommand, INSTALL_HINT, type Place, PROGRAM, type RunLimits } from './agent-command.ts'
import { readReply, toArguments } from './agent-messages.ts'

const ACTION_MS_MAX = 60_000
const CLOSE_MS_MAX = 5000
const SESSIONS_MAX = 16
/** The name that a spawn result gives for a run without a sandbox. */
const UNCONFINED = 'none'

interface Session {
  readonly name: string
  readonly place: Place
  readonly pass: Pass
}

export class AgentDriver implements OptionalDriver {
  readonly #config: BrowserConfig
  readonly #guard: UrlGuard
  readonly #command: AgentCommand
  #proxy: Promise<EgressProxy> | undefined
  readonly #sessions = new PerClient<Promise<Session>>('browser sessions', SESSIONS_MAX)

  constructor(host: Host, config: BrowserConfig, guard: UrlGuard) {
    this.#config = config
    this.#guard = guard
    this.#command = new AgentCommand(host, config)
  }

  async run(given: Action, call: ToolContext): Promise<string> {
    const { client, workspace, signal } = call
    const action = given as BrowserAction
    if (action.action === 'open') await this.#guard.addresses(this.#guard.page(action.url).hostname, signal)
    // The command writes a screenshot to the workspace, the only folder that both it and the daemon can reach.
    const temporary = `.${randomUUID()}.png`
    const path = action.action === 'screenshot' ? imagePath(action.path) : ''
    const args = toArguments(action, join(workspace.root, temporary))
    const session = await this.#sessionOf(call)
    try {
      const result = await this.#runInSession(session, args, { timeoutMs: ACTION_MS_MAX, signal })
      const answer = readReply(action.action, result)
      if (action.action === 'close') await this.#forget(client)
      if (action.action === 'open') await this.#requireProxyUse(client, session, signal)
      if (action.action !== 'screenshot') return withNotes(answer, session, result)
      return withNotes(`The screenshot is in ${await moveImage(workspace, temporary, path)}.`, session, result)
    } catch (error) {
      const [refusal] = session.pass.takeRefusals()
      throw refusal && !signal.aborted ? new AppError('forbidden', refusal.reason, { cause: error }) : error
    }
  }

  async unusableReason(signal: AbortSignal): Promise<string | undefined> {
    try {
      const { sandbox } = await this.#command.version(signal)
      // The command keeps its browser in a background process, which must outlive the command.
      return sandbox === UNCONFINED ? undefined : `the sandbox '${sandbox}' ends its browser after each command`
    } catch (error) {
      return errorText(error)
    }
  }

  async check(signal: AbortSignal): Promise<readonly Finding[]> {
    try {
      const { stdout } = await this.#command.version(signal)
      return [{ status: 'ok', detail: stdout.trim() || `${PROGRAM} is installed` }]
    } catch (error) {
      return [{ status: 'fail', detail: errorText(error).replace(`: ${INSTALL_HINT}`, ''), fix: INSTALL_HINT }]
    }
  }

  async close(): Promise<void> {
    using limit = signalScope([], CLOSE_MS_MAX)
    const sessions = this.#sessions.clear()
    await Promise.allSettled(sessions.map(async (session) => this.#closeSession(await session, limit.signal)))
    const proxy = this.#proxy
    this.#proxy = undefined
    await (await proxy?.catch(() => undefined))?.close()
  }

  #sessionOf(call: ToolContext): Promise<Session> {
    const { client } = call
    const known = this.#sessions.find(client)
    if (known) return known
    const opening = this.#openSession(call)
    const dropped = this.#sessions.keep(client, opening)
    if (dropped) void this.#dropSession(dropped)
    // `forget` returns the kept promise, which has failed: passing it on would cause an unhandled rejection.
    void opening.catch(() => void this.#sessions.forget(client))
    return opening
  }

  async #openSession({ client, agent, workspace: { root }, signal }: ToolContext): Promise<Session> {
    await this.#command.prepareHome(agent)
    this.#proxy ??= EgressProxy.start(this.#guard)
    const proxy = await this.#proxy
    const name = `${this.#config.session_name ?? 'sluice'}-${sha256Hex(client).slice(0, 16)}`
    const session = { name, place: { agent, root }, pass: proxy.issue() }
    try {
      // Closes a session of this name that an earlier daemon left, because its browser uses another proxy or none. The first
      // command also starts the command's background process, so it gets the time of a whole action.
      await this.#runInSession(session, ['close'], { timeoutMs: ACTION_MS_MAX, signal })
    } catch (error) {
      proxy.revoke(session.pass)
      throw error
    }
    return session
  }

  /** Closes the session and throws `unavailable` when its browser loaded a page without the proxy, and so without any check. */
  async #requireProxyUse(client: ClientId, session: Session, signal: AbortSignal): Promise<void> {
    if (session.pass.uses > 0) return
    await this.#closeSession(session, signal)
    await this.#forget(client)
    throw new AppError('unavailable', `This version of ${PROGRAM} does not load pages through the proxy; update it: ${INSTALL_HINT}`)
  }

  async #dropSession(opening: Promise<Session>): Promise<void> {
    const session = await this.#revoke(opening)
    if (!session) return
    using limit = signalScope([], CLOSE_MS_MAX)
    await this.#closeSession(session, limit.signal).catch(() => undefined)
  }

  #closeSession(session: Session, signal: AbortSignal): Promise<SpawnResult> {
    return this.#runInSession(session, ['close'], { timeoutMs: CLOSE_MS_MAX, signal })
  }

  #forget(client: ClientId): Promise<Session | undefined> {
    return this.#revoke(this.#sessions.forget(client))
  }

  /** Revokes the session's access to the network and returns the session. */
  async #revoke(opening: Promise<Session> | undefined): Promise<Session | undefined> {
    const session = await opening?.catch(() => undefined)
    if (session) (await this.#proxy)?.revoke(session.pass)
    return session
  }

  async #runInSession({ name, place, pass }: Session, args: readonly string[], limits: RunLimits): Promise<SpawnResult> {
    const proxy = await this.#proxy
    const env = {
      AGENT_BROWSER_PROXY: proxy?.url ?? '',
      AGENT_BROWSER_PROXY_USERNAME: pass.username,
      AGENT_BROWSER_PROXY_PASSWORD: pass.password,
      // By default Chromium connects to loopback addresses without the proxy.
      AGENT_BROWSER_PROXY_BYPASS: '<-loopback>',
    }
    return this.#command.run(['--session', name, ...args, '--json'], { place, env, ...limits })
  }
}

/** Moves the command's image to `path` through the workspace, which checks that path. */
async function moveImage(workspace: Workspace, temporary: string, path: string): Promise<string> {
  try {
    return await saveImage(workspace, await workspace.read(temporary, { bytesMax: IMAGE_BYTES_MAX }), path)
  } finally {
    await workspace.remove(temporary).catch(() => undefined)
  }
}

const withNotes = (answer: string, { pass }: Session, result: SpawnResult): string =>
  [answer, ...new Set(pass.takeRefusals().map(({ reason }) => `[refused: ${reason}]`)), unconfinedNote(result)].filter(Boolean).join('\n')
