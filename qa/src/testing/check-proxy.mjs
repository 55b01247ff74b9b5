// Checks a proxy in front of a daemon, from inside the machine of a guide: TLS, redirects, events, WebSockets, bodies and client
// addresses. Its only argument is a bearer token. Fails with the first thing that is wrong.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import https from 'node:https'

const [token] = process.argv.slice(2)
const HOST = 'agent.example.com'
/** Addresses of this machine that represent the proxy and two clients elsewhere. */
const [PROXY, FIRST, SECOND] = ['198.51.100.1', '203.0.113.7', '203.0.113.8']
const BEARER = { authorization: `Bearer ${token}` }
const JSON_BODY = { 'content-type': 'application/json' }
// The certificate of the guide is not public.
const TLS = { servername: HOST, rejectUnauthorized: false }

/** Sends a request and resolves to its response, before the body. */
async function send(path, { from = FIRST, method = 'GET', headers = {}, body, secure = true } = {}) {
  const options = { host: PROXY, path, method, localAddress: from, headers: { host: HOST, ...headers }, agent: false, ...(secure && TLS) }
  const request = (secure ? https : http).request(options)
  request.end(body)
  const [response] = await once(request, 'response')
  return response.setEncoding('utf8')
}

async function ask(path, options) {
  const response = await send(path, options)
  let text = ''
  for await (const part of response) text += part
  return { status: response.statusCode, headers: response.headers, text }
}

const say = (message, extra = {}) =>
  ask('/webhook', { method: 'POST', headers: { ...BEARER, ...JSON_BODY }, body: JSON.stringify({ message }), ...extra })

const checks = {
  async 'answers over TLS'() {
    const { status, text } = await ask('/ready')
    assert.equal(status, 200)
    assert.equal(JSON.parse(text).ready, true)
  },
  async 'redirects plain HTTP'() {
    const { status, headers } = await ask('/ready?x=1', { secure: false })
    assert.equal(status, 308)
    assert.equal(headers.location, `https://${HOST}/ready?x=1`)
  },
  async 'passes tokens on, and refuses their absence'() {
    assert.equal((await say('hello')).status, 200)
    assert.equal((await ask('/webhook', { method: 'POST', headers: JSON_BODY, body: '{"message":"x"}' })).status, 401)
  },
  async 'hides the metrics'() {
    assert.equal((await ask('/metrics')).status, 404)
  },
  async 'leaves large bodies to the daemon'() {
    const { status, text } = await say('x'.repeat(3_000_000), { from: SECOND })
    assert.equal(status, 413)
    assert.equal(typeof JSON.parse(text).code, 'string')
  },
  async 'sends an event while its stream is open'() {
    const stream = await send('/api/events?types=turn_completed', { headers: BEARER })
    assert.equal(stream.statusCode, 200)
    let text = ''
    const arrived = new Promise((found) =>
      stream.on('data', (part) => {
        text += part
        if (text.includes('turn_completed')) found()
      }),
    )
    assert.equal((await say('hello', { from: SECOND })).status, 200)
    await arrived
    assert.equal(stream.complete, false)
    stream.destroy()
  },
  async 'passes a WebSocket on, also from a web page of the public name'() {
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
    const socket = new WebSocket(`wss://${HOST}/ws/chat`, {
      protocols: ['sluice.v1', `bearer.${token}`],
      headers: { origin: `https://${HOST}` },
    })
    await once(socket, 'open')
    const answered = new Promise((done, fail) =>
      socket.addEventListener('message', ({ data }) => {
        const frame = JSON.parse(data)
        if (frame.type === 'error') fail(new Error(data))
        if (frame.type === 'done') done()
      }),
    )
    socket.send(JSON.stringify({ type: 'message', content: 'hello' }))
    await answered
    socket.close()
  },
  async 'names the client, whatever the client claims'() {
    const statusOf = async (from, forwarded) => {
      const headers = {
        ...BEARER,
        ...JSON_BODY,
        ...(forwarded && { 'x-forwarded-for': forwarded, 'x-real-ip': forwarded, forwarded: `for=${forwarded}` }),
      }
      return (await say('hello', { from, headers })).status
    }
    let [count, status] = [0, 200]
    while (status === 200 && count++ < 100) status = await statusOf(FIRST)
    assert.equal(status, 429, 'the first client reaches its limit')
    assert.equal(await statusOf(FIRST, '192.0.2.9'), 429, 'a header of the client changes nothing')
    assert.equal(await statusOf(SECOND), 200, 'the second client has a limit of its own')
    const { warnings } = JSON.parse((await ask('/health')).text)
    assert.deepEqual(
      warnings.filter((warning) => warning.includes('forwarding')),
      [],
    )
  },
}

for (const [title, check] of Object.entries(checks)) {
  await check()
  console.log(`ok: ${title}`)
}
