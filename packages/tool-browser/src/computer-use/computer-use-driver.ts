/** The backend `computer_use`: a sidecar that drives a desktop. Checks here what it can, and sends the sidecar the rest of the policy. */
import { readUpTo, signalScope } from '@sluice/kit'
import { members, parsedOrUndefined, text } from '@sluice/kit/foreign-json'
import { AppError, errorText, type Finding, type Host, type ToolContext, withoutSecrets } from '@sluice/sdk'
import type { Action, ActionName } from '../actions.ts'
import type { Driver } from '../backend.ts'
import type { BrowserConfig, ComputerUseConfig } from '../config.ts'
import type { UrlGuard } from '../url-guard.ts'

const REPLY_BYTES_MAX = 8_388_608
const CHECK_MS_MAX = 5000
const ERROR_CHARS_MAX = 300
const X_COORDINATES = ['x', 'from_x', 'to_x']
const Y_COORDINATES = ['y', 'from_y', 'to_y']

interface SidecarAnswer {
  readonly ok: boolean
  readonly status: number
  readonly body: string
}

export class ComputerUseDriver implements Driver {
  readonly #host: Host
  readonly #config: BrowserConfig
  readonly #guard: UrlGuard

  constructor(host: Host, config: BrowserConfig, guard: UrlGuard) {
    this.#host = host
    this.#config = config
    this.#guard = guard
  }

  async run(action: Action, { client, signal }: ToolContext): Promise<string> {
    const { computer_use, allowed_domains, session_name } = this.#config
    checkCoordinates(action, computer_use)
    if (action.action === 'screenshot' && action.path !== undefined)
      throw new AppError('invalid_request', "Backend 'computer_use' does not store screenshots in the workspace; omit 'path'")
    if (action.action === 'open') await this.#guard.addresses(this.#guard.page(action.url).hostname, signal)
    const { action: name, ...params } = action
    const { window_allowlist, max_coordinate_x, max_coordinate_y, api_key } = computer_use
    const request = {
      action: name,
      params,
      policy: { allowed_domains, window_allowlist, max_coordinate_x, max_coordinate_y },
      metadata: { session_name, client, source: 'sluice' },
    }
    return readAnswer(name, await this.#send(request, signal), api_key ? [api_key.reveal()] : [])
  }

  async check(signal: AbortSignal): Promise<readonly Finding[]> {
    const { endpoint } = this.#config.computer_use
    try {
      using limit = signalScope([signal], CHECK_MS_MAX)
      const response = await this.#host.fetch(endpoint, { redirect: 'manual', signal: limit.signal })
      await response.body?.cancel()
      return [{ status: 'ok', detail: `the sidecar at ${endpoint} answers` }]
    } catch (error) {
      const detail = `the sidecar at ${endpoint} does not answer: ${errorText(error)}`
      return [{ status: 'fail', detail, fix: 'start it, or change endpoint under [browser.computer_use]' }]
    }
  }

  async close(): Promise<void> {}

  async #send(body: unknown, signal: AbortSignal): Promise<SidecarAnswer> {
    const { endpoint, api_key, timeout_ms } = this.#config.computer_use
    using limit = signalScope([signal], timeout_ms)
    try {
      const response = await this.#host.fetch(endpoint, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...(api_key && { authorization: `Bearer ${api_key.reveal()}` }) },
        body: JSON.stringify(body),
        // A redirect must not receive the key.
        redirect: 'manual',
        signal: limit.signal,
      })
      const bytes = await readUpTo(response, REPLY_BYTES_MAX)
      if (!bytes) throw new AppError('too_large', `The sidecar answered with more than ${REPLY_BYTES_MAX} bytes`)
      return { ok: response.ok, status: response.status, body: new TextDecoder().decode(bytes) }
    } catch (cause) {
      if (cause instanceof AppError) throw cause
      if (signal.aborted) throw new AppError('aborted', 'The action was aborted', { cause })
      if (limit.timedOut) throw new AppError('upstream_timeout', `The sidecar did not answer within ${timeout_ms} ms`, { cause })
      throw new AppError('upstream', 'The computer-use sidecar cannot be reached', { cause })
    }
  }
}

function checkCoordinates(action: Action, { max_coordinate_x, max_coordinate_y }: ComputerUseConfig): void {
  for (const [name, value] of Object.entries(action)) {
    const max = X_COORDINATES.includes(name) ? max_coordinate_x : Y_COORDINATES.includes(name) ? max_coordinate_y : undefined
    if (max !== undefined && typeof value === 'number' && value > max)
      throw new AppError('forbidden', `'${name}' must be at most ${max} ([browser.computer_use]); got ${value}`)
  }
}

/** Returns the answer as text. Throws `upstream` with the sidecar's own message when it failed. Masks the secrets in both. */
function readAnswer(action: ActionName, { ok, status, body }: SidecarAnswer, secrets: readonly string[]): string {
  const parsed = parsedOrUndefined(body)
  const reply = members(parsed)
  if (!ok || reply.success === false) {
    const reason = text(reply.error) || `computer-use sidecar request failed with status ${status}`
    throw new AppError('upstream', withoutSecrets(reason, secrets).slice(0, ERROR_CHARS_MAX))
  }
  if (parsed === undefined && body.trim() !== '') return withoutSecrets(body, secrets)
  const data = reply.data ?? { backend: 'computer_use', action, ok: true }
  return withoutSecrets(typeof data === 'string' ? data : JSON.stringify(data, null, 2), secrets)
}
