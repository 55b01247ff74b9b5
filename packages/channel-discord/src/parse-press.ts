/** A button of a message of ours was pressed. */

import { type Members, members, text } from '@sluice/kit/foreign-json'
import type { Inbound } from '@sluice/sdk'
import { type Listener, placeOf } from './parse-message.ts'
import { isSnowflake, snowflakeMs } from './snowflake.ts'

export interface Press {
  readonly inbound: Inbound
  /** Tells the platform, and whoever pressed, that it was seen; under the version of the interface. */
  readonly seenPath: string
}

const COMPONENT = 3
const BUTTON = 2

/** Undefined for every other interaction. */
export function parsePress(listener: Listener, interaction: Members): Press | undefined {
  const { id, type, token } = interaction
  const { component_type, custom_id } = members(interaction.data)
  const message = members(interaction.message).id
  const sender = members(members(interaction.member).user).id ?? members(interaction.user).id
  const place = placeOf(listener, interaction)
  if (type !== COMPONENT || component_type !== BUTTON || !place) return undefined
  if (!isSnowflake(id) || !isSnowflake(message) || !isSnowflake(sender) || text(custom_id) === '' || text(token) === '') return undefined
  return {
    inbound: {
      id: `ix:${id}`,
      account: listener.account,
      sender,
      to: { to: place.channel, replyTo: message },
      text: '',
      sentAtMs: snowflakeMs(id),
      pressed: { message, value: text(custom_id) },
    },
    seenPath: `/interactions/${id}/${encodeURIComponent(text(token))}/callback`,
  }
}
