/** The rule for the names of senders: they arrive as the channel declares it. */
import type { Inbound } from '@sluice/sdk'
import { expect } from 'vitest'
import type { ChannelSubject } from '../channel-subject.ts'
import type { Rules } from '../rules.ts'

export function nameRules({ names, webhook, arrivals, listen }: ChannelSubject): Rules {
  if (names === undefined) return {}
  const named = (messages: readonly Inbound[]) => messages.filter(({ name }) => name !== undefined)
  return {
    'name: where the platform tells it, as the channel declares': async () => {
      const recorded = webhook?.fixtures.flatMap((fixture) => fixture.expect) ?? []
      for (const { payload } of arrivals?.recorded ?? []) recorded.push(...((await arrivals?.parse(payload)) ?? []))
      const received = listen?.expect ?? []
      if (names === 'none') expect(named([...recorded, ...received])).toEqual([])
      if (names === 'payload') expect(named([...recorded, ...received]), 'messages with a name').not.toEqual([])
      if (names === 'lookup') expect(named(recorded), 'messages whose payload has no name').toEqual([])
      for (const { id, name = 'x' } of named([...recorded, ...received])) expect(name, id).toMatch(/^\S(?:.*\S)?$/u)
    },
  }
}
