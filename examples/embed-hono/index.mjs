// Mounts Sluice below /assistant of a Hono application that has routes of its own.
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { serve } from '@hono/node-server'
import { createSluice } from '@sluice/daemon'
import offline from '@sluice/provider-offline'
import { Hono } from 'hono'

const { PORT = '3000', DATA_DIR = mkdtempSync(join(tmpdir(), 'embed-hono-')) } = process.env
const sluice = await createSluice({ features: [offline], dataDir: DATA_DIR, logger: false })

const app = new Hono()
app.get('/', (c) => c.text('a page of this application'))
app.route('/assistant', sluice.app)

const server = serve({ fetch: app.fetch, hostname: '127.0.0.1', port: Number(PORT) }, async ({ port }) => {
  const url = `http://127.0.0.1:${port}`
  console.log(`listening on ${url}/assistant`)
  if (process.argv.includes('--try')) {
    await tryIt(url)
    await stop()
  }
})
server.on('upgrade', (request, socket, head) => {
  if (request.url.startsWith('/assistant/ws/')) sluice.handleUpgrade(request, socket, head)
  else socket.destroy()
})

/** Sluice handles no signals: the application decides when it ends. */
async function stop() {
  server.close()
  await sluice.close()
}
process.once('SIGTERM', stop)

/** Pairs a device, asks a question over HTTP and another one over a WebSocket. */
async function tryIt(url) {
  const { token } = await sluice.call({ method: 'POST', path: '/api/devices', body: { name: 'try' } })
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const answer = await fetch(`${url}/assistant/webhook`, { method: 'POST', headers, body: JSON.stringify({ message: 'hello' }) })
  console.log(answer.status, (await answer.json()).response)
  const socket = new WebSocket(`${url.replace('http', 'ws')}/assistant/ws/chat`, ['sluice.v1', `bearer.${token}`])
  console.log(
    await new Promise((resolve) => socket.addEventListener('message', ({ data }) => resolve(JSON.parse(data).type), { once: true })),
  )
  socket.close()
  console.log(await (await fetch(url)).text())
}
