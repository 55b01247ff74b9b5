/**
 * Verifications of devices with emoji (client-server API, "Short Authentication String verification"). People begin them; the channel
 * accepts the ones of allowed users, and the operator compares the emoji.
 */

import type { Sas } from '@matrix-org/matrix-sdk-crypto-wasm'
import { list, type Members, members, text } from '@sluice/kit/foreign-json'
import { AppError, type Logger } from '@sluice/sdk'
import type { Device } from './device.ts'
import { isOfType, type OutgoingRequest } from './requests.ts'

const FLOWS_MAX = 100
const BEGINS = new Set(['m.key.verification.request', 'm.key.verification.start'])

export interface ShownVerification {
  readonly flow: string
  readonly userId: string
  readonly deviceId: string
  /** Empty until both sides have exchanged their keys. */
  readonly emoji: readonly { readonly symbol: string; readonly description: string }[]
}

export class Verifications {
  readonly #device: Device
  readonly #log: Logger
  readonly #isAllowed: (userId: string) => boolean
  /** The users by the flows that they began, the oldest first. */
  readonly #flows = new Map<string, string>()
  readonly #announced = new Set<string>()

  constructor(device: Device, log: Logger, isAllowed: (userId: string) => boolean) {
    this.#device = device
    this.#log = log
    this.#isAllowed = isAllowed
  }

  get size(): number {
    return this.#flows.size
  }

  /** Notes the verifications that begin with these messages to the device. */
  noteToDevice(events: unknown): void {
    for (const event of list(events).map(members)) {
      const { type, sender, content } = event
      if (BEGINS.has(text(type))) this.#note(text(members(content).transaction_id), text(sender))
    }
  }

  /** Takes an event of a room that belongs to a verification. Returns false for every other one. */
  async takeRoomEvent(event: Members, room: string): Promise<boolean> {
    const isRequest = members(event.content).msgtype === 'm.key.verification.request'
    if (!isRequest && !text(event.type).startsWith('m.key.verification.')) return false
    if (isRequest) this.#note(text(event.event_id), text(event.sender))
    await this.#device.takeVerificationEvent(event, room)
    return true
  }

  #note(flow: string, userId: string): void {
    if (flow === '' || !this.#isAllowed(userId)) return
    this.#flows.set(flow, userId)
    const [oldest] = this.#flows.keys()
    if (oldest !== undefined && this.#flows.size > FLOWS_MAX) this.#forget(oldest)
  }

  /** Accepts what can be accepted, and forgets what has ended. */
  async advance(signal: AbortSignal): Promise<void> {
    for (const [flow, userId] of [...this.#flows]) {
      const request = this.#device.verificationRequest(userId, flow)
      const { Requested } = this.#device.sdk.VerificationRequestPhase
      if (request?.phase() === Requested && !request.weStarted()) {
        await this.#send(request.acceptWithMethods([this.#device.sdk.VerificationMethod.SasV1]), signal)
      }
      const sas = this.#sasOf(flow, userId)
      if (sas && !sas.weStarted() && !sas.hasBeenAccepted()) await this.#send(sas.accept(), signal)
      if (sas?.isDone() || sas?.isCancelled() || (!sas && (!request || request.isCancelled() || request.isDone()))) this.#forget(flow)
      else if (sas?.canBePresented() && !this.#announced.has(flow)) {
        this.#announced.add(flow)
        this.#log.info('a person verifies the device of the bot: compare the emoji with `sluice fedchat verify`', {
          channel: 'fedchat',
          user: userId,
          emoji: emojiOf(sas)
            .map(({ description }) => description)
            .join(', '),
        })
      }
    }
  }

  shown(): readonly ShownVerification[] {
    return [...this.#flows].flatMap(([flow, userId]) => {
      const sas = this.#sasOf(flow, userId)
      return sas ? [{ flow, userId, deviceId: sas.otherDeviceId.toString(), emoji: sas.canBePresented() ? emojiOf(sas) : [] }] : []
    })
  }

  /** Sends the operator's decision. Throws `not_found` if the emoji of the flow are not shown. */
  async decide(flow: string, doMatch: boolean, signal: AbortSignal): Promise<void> {
    const sas = this.#sasOf(flow, this.#flows.get(flow) ?? '')
    if (!sas?.canBePresented()) throw new AppError('not_found', 'There is no such verification')
    if (!doMatch) return this.#send(sas.cancelWithCode('m.mismatched_sas'), signal)
    for (const request of await sas.confirm()) await this.#send(request, signal)
  }

  #sasOf(flow: string, userId: string): Sas | undefined {
    const verification = this.#device.verification(userId, flow)
    return verification instanceof this.#device.sdk.Sas ? verification : undefined
  }

  #forget(flow: string): void {
    this.#flows.delete(flow)
    this.#announced.delete(flow)
  }

  async #send(request: object | undefined, signal: AbortSignal): Promise<void> {
    if (isOfType(request)) await this.#device.sendRequest(request as OutgoingRequest, signal)
  }
}

const emojiOf = (sas: Sas) => (sas.emoji() ?? []).map(({ symbol, description }) => ({ symbol, description }))
