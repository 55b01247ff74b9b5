/** The built program reads web pages: the libraries of the reader work in its bundle, not only in the sources. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { post, scratch, startDaemon, token } from '../daemons/bundle.ts'

const SENTENCE = 'The tide is 12 cm at noon, and the boat floats beside the pier of the old town. '
const PAGE = `<html><head><title>Tides</title></head><body><nav><a href="/menu">menu</a></nav>
<article><h1>Tides of Turku</h1>${`<p>${SENTENCE.repeat(3)}</p>`.repeat(3)}</article></body></html>`

test('web_fetch reads the article of a page', async () => {
  const site = createServer((_request, response) => response.setHeader('content-type', 'text/html; charset=utf-8').end(PAGE))
  await new Promise<void>((listening) => site.listen(0, '127.0.0.1', listening))
  const { dir, dispose } = scratch('[gateway]\ncallable_tools = ["web_fetch"]\n[http]\nallow_private = ["127.0.0.1"]\n')
  const daemon = await startDaemon('full', dir)
  onTestFinished(async () => {
    daemon.kill('SIGTERM')
    await daemon.exited
    site.close()
    dispose()
  })
  const url = `http://127.0.0.1:${(site.address() as AddressInfo).port}/tides`
  const authorization = `Bearer ${await token('full', dir)}`
  const { body } = await post(`${daemon.url}/api/tools/web_fetch/calls`, { input: { url } }, { authorization })
  expect(body).toMatchObject({ outcome: 'ok', output: expect.stringContaining(SENTENCE.trim()) })
  expect(body.output).not.toContain('menu')
})
