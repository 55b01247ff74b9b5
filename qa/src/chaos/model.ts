/** A fake model service. A function answers each request; requests that the real service refuses get its error. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { withoutFrames } from '@sluice/sdk'
import { withoutSituation } from '@sluice/testkit/model-server'
import { openaiWire } from '@sluice/testkit/model-wire-openai'
import { markIn, marksIn } from './marks.ts'

export interface Asked {
  /** The mark in `text`, if there is one. */
  readonly mark: string | undefined
  /** The last message of the user. */
  readonly text: string
  /** The results of tools since then, oldest first. */
  readonly results: readonly string[]
  /** The conversation ends with the result of a tool. */
  readonly afterTool: boolean
  /** Why the real service would refuse the request. */
  readonly problem: string | undefined
}

/** `status`: the service fails with this HTTP status. */
export type ModelAnswer = { readonly text: string } | { readonly tool: string; readonly input: object } | { readonly status: number }

export interface Model {
  /** `base_url` of the provider. */
  readonly url: string
  /** The highest number of requests that ran at once. */
  readonly atOnceMax: number
  close(): Promise<void>
}

/** The request for a summary of a conversation begins with these words. */
const SUMMARY = 'You write the memory of an assistant'

/**
 * Starts the service. A request whose `answer` never resolves is never answered. A summary, which `answer` does not get, is the marks
 * of the messages that it summarises.
 */
export async function startModel(answer: (asked: Asked) => Promise<ModelAnswer>): Promise<Model> {
  let atOnce = 0
  let atOnceMax = 0
  let number = 0

  const serve = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    atOnce += 1
    atOnceMax = Math.max(atOnceMax, atOnce)
    outgoing.on('close', () => {
      atOnce -= 1
    })
    const body = await readJson(incoming)
    const asked = askedIn(body)
    const reply = JSON.stringify(body).includes(SUMMARY) ? { text: marksIn(asked.text).join(' ') } : await answer(asked)
    if (asked.problem !== undefined) return void outgoing.writeHead(400).end(JSON.stringify(openaiWire.error(400, asked.problem)))
    if ('status' in reply) return void outgoing.writeHead(reply.status).end(JSON.stringify(openaiWire.error(reply.status, 'Not now')))
    const json = openaiWire.json({
      number: ++number,
      model: 'chaos',
      text: 'text' in reply ? reply.text : '',
      toolCalls: 'tool' in reply ? [{ id: `call_${number}`, name: reply.tool, input: reply.input }] : [],
      usage: { inputTokens: 1, outputTokens: 1 },
      cutShort: false,
      thinking: '',
    })
    outgoing.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(json))
  }

  const server = createServer((incoming, outgoing) => {
    serve(incoming, outgoing).catch(() => outgoing.destroy())
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    get atOnceMax() {
      return atOnceMax
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

function askedIn(body: unknown): Asked {
  const refused = openaiWire.problem(new Headers(), body)
  const problem = typeof refused === 'object' ? JSON.stringify(refused.body) : refused
  if (problem !== undefined) return { mark: undefined, text: '', results: [], afterTool: false, problem }
  const { messages } = body as { readonly messages: readonly { readonly role: string; readonly content: unknown }[] }
  const text = withoutFrames(withoutSituation(openaiWire.lastUserText(body)))
  const since = messages.slice(messages.findLastIndex(({ role }) => role === 'user') + 1)
  const results = since
    .filter(({ role }) => role === 'tool')
    .map(({ content }) => JSON.stringify(typeof content === 'string' ? withoutFrames(content) : content))
  return { mark: markIn(text), text, results, afterTool: messages.at(-1)?.role === 'tool', problem }
}

async function readJson(incoming: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming as AsyncIterable<Buffer>) chunks.push(chunk)
  return JSON.parse(Buffer.concat(chunks).toString())
}
