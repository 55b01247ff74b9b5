/** `computer_use`: a sidecar that drives a whole desktop. It is told the policy; what can be checked here is checked here. */

import { readUpTo, signalScope } from '@sluice/kit'
import { AppError, errorText, type Finding, type Host, type ToolContext } from '@sluice/sdk'
import type { Action } from '../actions.ts'
import type { Driver } from '../backend.ts'
import type { BrowserConfig, ComputerUseConfig } from '../config.ts'
import type { UrlGuard } from '../url-guard.ts'
import { sidecarReply } from './sidecar-reply.ts'

const REPLY_BYTES_MAX = 8_388_608
const CHECK_MS_MAX = 5000

type SidecarConfig = Pick<BrowserConfig, 'allowed_domains' | 'session_name' | 'computer_use'>

export class ComputerUseDriver implements Driver {
  readonly #host: Pick<Host, 'fetch'>
  readonly #config: SidecarConfig
  readonly #guard: UrlGuard

  constructor(host: Pick<Host, 'fetch'>, config: SidecarConfig, guard: UrlGuard) {
    this.#host = host
    this.#config = config
    this.#guard = guard
  }

  async run(action: Action, { client, signal }: ToolContext): Promise<string> {
    const { computer_use, allowed_domains, session_name } = this.#config
    checkCoordinates(action, computer_use)
    if (action.action === 'screenshot' && action.path !== undefined) {
      throw new AppError('invalid_request', "backend 'computer_use' keeps no screenshots in the workspace; leave 'path' out")
    }
    if (action.action === 'open') await this.#guard.addresses(this.#guard.page(action.url).hostname, signal)
    const { action: name, ...params } = action
    const { window_allowlist, max_coordinate_x, max_coordinate_y, timeout_ms, api_key } = computer_use
    const answer = await this.#send(
      {
        action: name,
        params,
        policy: { allowed_domains, window_allowlist, max_coordinate_x, max_coordinate_y },
        metadata: { session_name, client, source: 'sluice' },
      },
      { signal, timeoutMs: timeout_ms },
    )
    return sidecarReply(name, answer, api_key ? [api_key.reveal()] : [])
  }

  async check(signal: AbortSignal): Promise<readonly Finding[]> {
    const { endpoint } = this.#config.computer_use
    try {
      using limit = signalScope([signal], CHECK_MS_MAX)
      const response = await this.#host.fetch(endpoint, { redirect: 'manual', signal: limit.signal })
      await response.body?.cancel()
      return [{ status: 'ok', detail: `the sidecar at ${endpoint} answers` }]
    } catch (error) {
      return [
        {
          status: 'fail',
          detail: `the sidecar at ${endpoint} does not answer: ${errorText(error)}`,
          fix: 'start it, or change endpoint under [browser.computer_use]',
        },
      ]
    }
  }

  async close(): Promise<void> {}

  async #send(body: unknown, { signal, timeoutMs }: { readonly signal: AbortSignal; readonly timeoutMs: number }) {
    const { endpoint, api_key } = this.#config.computer_use
    using limit = signalScope([signal], timeoutMs)
    try {
      const response = await this.#host.fetch(endpoint, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...(api_key && { authorization: `Bearer ${api_key.reveal()}` }) },
        body: JSON.stringify(body),
        // The key goes to the configured address alone.
        redirect: 'manual',
        signal: limit.signal,
      })
      const bytes = await readUpTo(response, REPLY_BYTES_MAX)
      if (!bytes) throw new AppError('too_large', `the sidecar answered with more than ${REPLY_BYTES_MAX} bytes`)
      return { ok: response.ok, status: response.status, body: new TextDecoder().decode(bytes) }
    } catch (cause) {
      if (cause instanceof AppError) throw cause
      if (signal.aborted) throw new AppError('aborted', 'the action was aborted', { cause })
      if (limit.timedOut) throw new AppError('upstream_timeout', `the sidecar did not answer within ${timeoutMs} ms`, { cause })
      throw new AppError('upstream', 'the computer-use sidecar cannot be reached', { cause })
    }
  }
}

const ACROSS = ['x', 'from_x', 'to_x']
const DOWN = ['y', 'from_y', 'to_y']

function checkCoordinates(action: Action, { max_coordinate_x, max_coordinate_y }: ComputerUseConfig): void {
  for (const [name, value] of Object.entries(action)) {
    const max = ACROSS.includes(name) ? max_coordinate_x : DOWN.includes(name) ? max_coordinate_y : undefined
    if (max !== undefined && typeof value === 'number' && value > max) {
      throw new AppError('forbidden', `'${name}' is more than ${max}, the most [browser.computer_use] allows`)
    }
  }
}
