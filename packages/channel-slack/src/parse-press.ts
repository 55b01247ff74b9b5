/** A press of a button under a message of ours. Who may press is the gateway's to decide: the sender is whoever did. */

import { list, type Members, members, text, textAt } from '@sluice/kit/foreign-json'
import type { Inbound } from '@sluice/sdk'
import { addressIn, type Reader } from './parse-message.ts'
import { isTimestamp } from './timestamp.ts'

/** More than stand under one message. */
const ACTIONS_MAX = 25

/** Empty for every other interaction; never throws. */
export function parsePresses(payload: Members, reader: Pick<Reader, 'account' | 'config'>): readonly Inbound[] {
  if (text(payload.type) !== 'block_actions') return []
  const sender = textAt(payload, 'user.id')
  const channel = textAt(payload, 'container.channel_id', 'channel.id')
  const message = textAt(payload, 'container.message_ts', 'message.ts')
  if (sender === '' || channel === '' || !isTimestamp(message)) return []
  const to = addressIn(channel, { message, thread: textAt(payload, 'container.thread_ts', 'message.thread_ts') }, reader.config)
  return list(payload.actions)
    .slice(0, ACTIONS_MAX)
    .flatMap((each) => {
      const action = members(each)
      const [at, value] = [text(action.action_ts), text(action.value)]
      if (at === '' || text(action.type) !== 'button' || value === '') return []
      return [{ id: `act:${at}:${sender}:${channel}`, account: reader.account, sender, to, text: '', pressed: { message, value } }]
    })
}
