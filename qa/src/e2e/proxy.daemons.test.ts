/** A daemon behind the proxy of its network: it answers with a model that only the proxy reaches, and doctor names the proxy. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { startModelServer } from '@sluice/testkit/model-server'
import { expect, test } from 'vitest'
import { post, run, scratch, startDaemon, token } from '../daemons/bundle.ts'

test.each(['', 'model_timeout_secs = 600'])(
  'a turn reaches its model through the proxy of the environment, with the setting "%s"',
  async (limit) => {
    const model = await startModelServer({ apiKey: null, models: ['test'] })
    const asked: string[] = []
    // A proxy for one name: it looks models.example up, which nothing else can.
    const proxy = createServer().on('connect', ({ url, headers }, socket) => {
      asked.push(`${url} ${headers['proxy-authorization']}`)
      const upstream = connect(Number(new URL(model.url).port), '127.0.0.1', () => socket.write('HTTP/1.1 200 OK\r\n\r\n'))
      socket.pipe(upstream).pipe(socket)
      for (const end of [socket, upstream]) end.on('error', () => [socket, upstream].map((each) => each.destroy()))
    })
    proxy.listen(0, '127.0.0.1')
    await once(proxy, 'listening')
    const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
    const env = { HTTP_PROXY: url.replace('//', '//user:canary@'), NO_PROXY: 'intranet.example' }
    const folder = scratch(`
[provider]
kind = "groq"
base_url = "http://models.example/groq/v1"
api_key = "test"
model = "test"
${limit}
`)
    try {
      const daemon = await startDaemon('full', folder.dir, { env })
      const bearer = await token('full', folder.dir)
      model.script({ text: 'through the proxy' })
      const answer = await post(`${daemon.url}/webhook`, { message: 'hello' }, { authorization: `Bearer ${bearer}` })
      expect(answer).toMatchObject({ status: 200, body: { response: 'through the proxy' } })
      expect(new Set(asked)).toEqual(new Set([`models.example:80 Basic ${btoa('user:canary')}`]))
      const doctor = await run('full', ['doctor', '--json', '--data-dir', folder.dir], env)
      const row = JSON.parse(doctor.stdout).find(({ check }: { check: string }) => check === 'proxy')
      const direct = 'intranet.example, localhost, 127.0.0.1, [::1]'
      expect(row).toMatchObject({ status: 'ok', detail: `requests go through ${url} (HTTP_PROXY), except to ${direct}` })
      daemon.kill('SIGTERM')
      await daemon.exited
    } finally {
      proxy.closeAllConnections()
      proxy.close()
      await model.close()
      folder.dispose()
    }
  },
)
