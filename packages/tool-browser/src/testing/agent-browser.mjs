#!/usr/bin/env node
// A fake of the agent-browser command with the same output. `open` loads the page through the proxy from the environment, unless
// the path is `/around`.
import { writeFileSync } from 'node:fs'
import { request } from 'node:http'

const args = process.argv.slice(2)
const reply = (value) => process.stdout.write(JSON.stringify(value))
if (args[0] === '--version') process.stdout.write('agent-browser 1.2.3\n')
else await act(args.slice(2, -1))

async function act([verb, first, second]) {
  if (verb === 'open') {
    const { AGENT_BROWSER_PROXY, AGENT_BROWSER_PROXY_USERNAME, AGENT_BROWSER_PROXY_PASSWORD } = process.env
    if (new URL(first).pathname === '/around') return reply({ success: true, data: { url: first } })
    const pass = Buffer.from(`${AGENT_BROWSER_PROXY_USERNAME}:${AGENT_BROWSER_PROXY_PASSWORD}`).toString('base64')
    const { hostname, port } = new URL(AGENT_BROWSER_PROXY)
    const status = await new Promise((resolve) =>
      request({ hostname, port, path: first, headers: { 'proxy-authorization': `Basic ${pass}` } }, (response) =>
        resolve(response.resume().statusCode),
      ).end(),
    )
    return reply({ success: true, data: { url: first, title: 'the page', status } })
  }
  if (verb === 'get') return reply({ success: true, data: { [first]: `the ${first}` } })
  if (verb === 'is') return reply({ success: true, data: { visible: true } })
  if (verb === 'snapshot') return reply({ success: true, data: { snapshot: '- button "Go" [ref=e1]', refs: {} } })
  if (verb === 'screenshot') {
    writeFileSync(first, 'PNG')
    return reply({ success: true, data: { path: first } })
  }
  if (verb === 'press') return void process.stdout.write('pressed, without JSON')
  if (verb === 'hover') return reply({ success: false, error: 'no such element' })
  if (verb === 'click') {
    process.stderr.write(`broken ${first} ${second}`)
    process.exitCode = 3
  }
  if (verb === 'scroll') await new Promise((resolve) => setTimeout(resolve, 30_000))
  reply({ success: true, data: null })
}
