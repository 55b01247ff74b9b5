/** Simulates people who decide approvals: several at once, by every means, at random. Some approvals are left to expire. */

import { TELEGRAM_GROUP, type TelegramMessage } from '@sluice/channel-telegram/testing'
import type { Random } from '@sluice/testkit/random'
import { run as runCommand } from '../../daemons/bundle.ts'
import { ask, pause } from '../request.ts'
import { type Attempt, gateName, type Means } from './history.ts'
import { PEOPLE, type SopsWorld } from './world.ts'

export interface DecidersOptions {
  readonly world: SopsWorld
  readonly random: Random
  readonly profile: string
  readonly dataDir: string
}

/** The members of an open approval, as the API shows it, that deciding takes. */
interface OpenApproval {
  readonly run_id: string
  readonly step_id: string
  readonly expires_at: string | null
  readonly prompts: readonly { readonly provider_id: string | null }[]
}

/** Makes one attempt to decide an approval, and records its answer if it gets one. */
type MakeAttempt = (url: string, signal: AbortSignal) => Promise<void>

/** An attempt before it is known who makes it. */
type Plan = Pick<Attempt, 'tag' | 'run' | 'step' | 'means' | 'approve'>

const POLL_MS = 40
/** The delay before the next attempt on an approval that is still open. */
const AGAIN_MS = 1200
const DELAY_MS_MAX = 500
const SHARE = { left: 0.08, approve: 0.85, approveAgain: 0.25, stranger: 0.1, two: 0.35, three: 0.1 }
const MEANS: readonly [Means, ...Means[]] = ['http', 'http', 'http', 'press', 'press', 'press', 'reply', 'reply', 'command']
/** A command is a process of its own, which takes much time. */
const COMMANDS_AT_ONCE = 1
/** The error of a command whose daemon ended before it answered. */
const UNANSWERED = /The action may have been carried out/
const DECIDED = /\bwas (?<state>approved|rejected|expired|cancelled)\b/

export class Deciders {
  readonly #options: DecidersOptions
  /** Approvals that are left to expire. */
  readonly #left = new Set<string>()
  #commands = 0

  constructor(options: DecidersOptions) {
    this.#options = options
  }

  /** Runs until `signal` aborts and no attempt is running. `leavesNone`: every approval not left to expire before is answered. */
  async run(url: string, signal: AbortSignal, { leavesNone = false }: { readonly leavesNone?: boolean } = {}): Promise<void> {
    const { random } = this.#options
    const busy = new Map<string, Promise<void>>()
    while (!signal.aborted) {
      const answer = await ask(url, { path: '/api/approvals?state=pending&limit=200', signal })
      for (const approval of (answer?.body.approvals ?? []) as readonly OpenApproval[]) {
        const name = gateName(approval.run_id, approval.step_id)
        if (busy.has(name) || this.#left.has(name)) continue
        if (approval.expires_at !== null && !leavesNone && random.chance(SHARE.left)) this.#left.add(name)
        else
          busy.set(
            name,
            this.#decide(approval, url, signal).finally(() => busy.delete(name)),
          )
      }
      await pause(POLL_MS, signal)
    }
    await Promise.all(busy.values())
  }

  async #decide(approval: OpenApproval, url: string, signal: AbortSignal): Promise<void> {
    const { random } = this.#options
    await pause(random.within(0, DELAY_MS_MAX), signal)
    const people = random.chance(SHARE.three) ? 3 : random.chance(SHARE.two) ? 2 : 1
    const attempts = Array.from({ length: people }, () => this.#attemptOn(approval))
    if (!signal.aborted) await Promise.all(attempts.map((attempt) => attempt?.(url, signal)))
    await pause(AGAIN_MS, signal)
  }

  /** Plans one attempt. Returns undefined if its means cannot be used now. */
  #attemptOn(approval: OpenApproval): MakeAttempt | undefined {
    const { random, world } = this.#options
    const { run_id: run, step_id: step } = approval
    const means = random.pick(MEANS)
    const tag = `by-${world.recorder.nextNumber()}`
    const approve = random.chance(step.includes('-again-') ? SHARE.approveAgain : SHARE.approve)
    const plan: Plan = { tag, run, step, means, approve }
    if (means === 'http') return (url, signal) => this.#callApi(plan, url, signal)
    if (means === 'command') return this.#commands < COMMANDS_AT_ONCE ? () => this.#runCommand(plan) : undefined
    const prompt = this.#promptOf(approval)
    return prompt && this.#writeInChat(plan, prompt)
  }

  #begin(plan: Plan, by: string, isEntitled = true): void {
    this.#options.world.recorder.see({ type: 'deciding', ...plan, by, isEntitled })
  }

  async #callApi(plan: Plan, url: string, signal: AbortSignal): Promise<void> {
    const { recorder } = this.#options.world
    const { tag, run, step, approve } = plan
    this.#begin(plan, 'device:')
    const path = `/api/approvals/${encodeURIComponent(run)}/${encodeURIComponent(step)}`
    const answer = await ask(url, { path, body: { approved: approve, feedback: tag }, signal })
    if (answer?.status === 200) recorder.see({ type: 'won', tag })
    else if (answer?.status === 409) recorder.see({ type: 'lost', tag, state: String(answer.body.state) })
    else if (answer) recorder.see({ type: 'unexpected', detail: `the decision ${tag} got status ${answer.status}: ${answer.body.error}` })
  }

  async #runCommand(plan: Plan): Promise<void> {
    const { world, profile, dataDir } = this.#options
    const { tag, run, step, approve } = plan
    this.#begin(plan, 'cli:')
    this.#commands += 1
    const [verb, ...feedback] = approve ? ['approve'] : ['reject', tag]
    const { code, stderr } = await runCommand(profile, ['approvals', verb ?? '', run, step, ...feedback, '--data-dir', dataDir])
    this.#commands -= 1
    const { state } = DECIDED.exec(stderr)?.groups ?? {}
    if (code === 0) world.recorder.see({ type: 'won', tag })
    else if (state !== undefined) world.recorder.see({ type: 'lost', tag, state })
    // The daemon was killed before it answered, as with a request over HTTP: whether the decision counts is unknown.
    else if (!UNANSWERED.test(stderr))
      world.recorder.see({ type: 'unexpected', detail: `the command of the decision ${tag} ended with ${code}: ${stderr}` })
  }

  /** Presses a button of the prompt or replies to it, as a random person. */
  #writeInChat(plan: Plan, prompt: TelegramMessage): MakeAttempt {
    const { world, random } = this.#options
    const { tag, means, approve } = plan
    const isEntitled = !random.chance(SHARE.stranger)
    const id = isEntitled ? random.pick([PEOPLE.ada, PEOPLE.bob]) : PEOPLE.eve
    return async () => {
      this.#begin(plan, `telegram:${id}`, isEntitled)
      const data = prompt.buttons?.flat().find((value) => value.startsWith(approve ? 'a.' : 'r.'))
      const text = `${approve ? 'approve' : 'reject'} ${tag}`
      if (means === 'press' && data !== undefined) world.messenger.press({ message: prompt, from: { id }, data })
      else world.messenger.say({ chat: TELEGRAM_GROUP, from: { id }, text, replyTo: prompt.id })
    }
  }

  #promptOf({ prompts }: OpenApproval): TelegramMessage | undefined {
    const [, number] = /:(\d+)$/.exec(prompts.at(-1)?.provider_id ?? '') ?? []
    const { messenger } = this.#options.world
    return number === undefined ? undefined : messenger.messages(TELEGRAM_GROUP).find(({ id }) => id === Number(number))
  }
}
