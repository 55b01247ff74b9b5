/** voice-call in the crash suite: Telnyx reports what a person said, and repeats a report until it was accepted. */
import type { CrashKind } from '@sluice/testkit/crash-kind'
import { telnyxState } from '../telnyx.ts'
import { OUR_NUMBER, startVoiceFake } from './fake.ts'
import { telnyxHeaders } from './keys.ts'
import { sectionOf } from './section.ts'

const SENDERS = ['+15550004441', '+15550004442', '+15550004443'] as const

export async function crashKind(): Promise<CrashKind> {
  const fake = await startVoiceFake()
  let written = 0
  return {
    section: sectionOf(fake),
    senders: [...SENDERS],
    isPrivate: true,
    dropsRepeats: true,
    fake,
    write: ({ sender }) => `v3:${sender}/event-${++written}`,
    request([{ sender, text, id }]) {
      const state = telnyxState({ remote: sender, local: OUR_NUMBER, direction: 'inbound' })
      const heard = { confidence: 0.9, is_final: true, transcript: text }
      const payload = { call_control_id: `v3:${sender}`, client_state: state, transcription_data: heard }
      const body = JSON.stringify({ data: { event_type: 'call.transcription', id: id.split('/')[1], payload } })
      return { path: '/voice/inbound', headers: { 'content-type': 'application/json', ...telnyxHeaders(body, Date.now()) }, body }
    },
    textIn: ({ json }) => String((json as { payload?: unknown } | undefined)?.payload ?? ''),
    delivered: () => fake.commands.flatMap(({ action, values }) => (action === 'speak' ? [String(values.payload)] : [])),
  }
}
