/** The conformance suite of channels: call `channelConformance` in the tests of a feature with a channel. */
import { rowOf } from '@sluice/sdk'
import { arrivalRules } from './channel-rules/arrivals.ts'
import { createBench } from './channel-rules/bench.ts'
import { buildRules } from './channel-rules/build.ts'
import { listenRules } from './channel-rules/listen.ts'
import { markupRules } from './channel-rules/markup.ts'
import { mentionOnlyRules } from './channel-rules/mention-only.ts'
import { nameRules } from './channel-rules/names.ts'
import { outageRules } from './channel-rules/outage.ts'
import { sendRules } from './channel-rules/send.ts'
import { webhookRules } from './channel-rules/webhook.ts'
import type { ChannelSubject } from './channel-subject.ts'
import { type Rules, registerRules } from './rules.ts'

export type {
  ArrivalSubject,
  ChannelFixture,
  ChannelSubject,
  ListenPlatform,
  ListenSubject,
  Proof,
  RecordedArrival,
  SendSubject,
  WebhookSubject,
} from './channel-subject.ts'

/** Registers one test for each rule that applies to the channel. */
export const channelConformance = (subject: ChannelSubject): void =>
  registerRules(`channel conformance: ${subject.feature.id}`, channelRules(subject), subject.except)

/** Returns the rules that apply to the channel, by title. */
export function channelRules(subject: ChannelSubject): Rules {
  const bench = createBench(subject)
  return {
    ...buildRules(bench),
    ...markupRules(bench),
    ...(subject.webhook ? webhookRules(bench, subject.webhook) : {}),
    ...nameRules(subject),
    ...(subject.arrivals ? arrivalRules(bench, subject.arrivals) : {}),
    ...(subject.send ? sendRules(bench, subject.send) : {}),
    ...mentionOnlyRules(subject),
    ...(subject.listen ? listenRules(bench, subject.listen) : {}),
    ...(subject.listen && (subject.listen.platform || rowOf(subject.feature.id)) ? outageRules(subject, subject.listen) : {}),
  }
}
