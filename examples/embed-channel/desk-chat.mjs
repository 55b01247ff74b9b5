// A channel of an application: it hands messages over while it listens, and gets the replies in `send`.
import { defineFeature } from '@sluice/sdk'

export function createDeskChat() {
  const listening = Promise.withResolvers()
  /** Waits for the reply to each person, by name. */
  const waiting = new Map()
  let written = 0

  const channel = {
    name: 'desk',
    // Everyone who can write here may talk to the agent.
    allow: ['*'],
    limits: { text: 4000, unit: 'utf16' },
    async listen(deliver, { signal }) {
      listening.resolve(deliver)
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    },
    async send({ to }, { text }) {
      waiting.get(to)?.(text)
      return { id: `reply-${++written}` }
    },
  }

  return {
    feature: defineFeature({ id: 'x-desk', build: () => ({ channels: [channel] }) }),
    /** Resolves to the reply. The message is stored before `deliver` resolves, and is answered once, also after a crash. */
    async ask(person, text) {
      const deliver = await listening.promise
      const reply = new Promise((resolve) => waiting.set(person, resolve))
      await deliver({ id: `${Date.now()}-${++written}`, account: 'desk', sender: person, to: { to: person }, text })
      return reply
    },
  }
}
