// A channel in TypeScript: the compiler checks the port.
import { createSluice } from '@sluice/daemon'
import offline from '@sluice/provider-offline'
import { type Channel, defineFeature } from '@sluice/sdk'

const channel: Channel = {
  name: 'desk',
  allow: ['*'],
  limits: { text: 4000, unit: 'utf16' },
  async listen(deliver, { signal }) {
    await deliver({ id: '1', account: 'desk', sender: 'ann', to: { to: 'ann' }, text: 'hello' })
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
  },
  async send(to, { text }) {
    console.log(to.to, text)
    return { id: 'reply-1' }
  },
}

export const start = (dataDir: string) =>
  createSluice({ features: [offline, defineFeature({ id: 'x-desk', build: () => ({ channels: [channel] }) })], dataDir })
