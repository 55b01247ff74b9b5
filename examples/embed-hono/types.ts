// The same use in TypeScript: the type of an event follows from its name.
import { createSluice, type Sluice } from '@sluice/daemon'
import offline from '@sluice/provider-offline'
import { Hono } from 'hono'

export async function mount(dataDir: string, signal: AbortSignal): Promise<{ app: Hono; sluice: Sluice }> {
  const config = { gateway: { allowed_hosts: ['app.example.org'] } }
  const sluice = await createSluice({ features: [offline], dataDir, config, logger: console, signal })
  sluice.on('turn_completed', ({ turn_id, took_ms }) => console.log(turn_id, took_ms.toFixed(0)))
  const app = new Hono()
  app.route('/assistant', sluice.app)
  return { app, sluice }
}
