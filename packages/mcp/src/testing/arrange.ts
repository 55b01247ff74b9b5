/** The feature with one fake server, for its tests. */
import type { ClientId, DeviceRecord, Tool, ToolContext } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { toolContext } from '@sluice/testkit/tool'
import * as v from 'valibot'
import { expect } from 'vitest'
import feature from '../index.ts'
import { FakeServer } from './fake-server.ts'
import { waitFor } from './wait-for.ts'

const closing: (() => Promise<void>)[] = []
/** Closes the features of a test. Each file that arranges one calls it after each of its tests. */
export async function closeArranged(): Promise<void> {
  for (const close of closing.splice(0)) await close()
}

export const text = (content: string) => ({ content: [{ type: 'text', text: content }] })

/** A daemon with one server, `notes`. `restart` builds the feature again with the data that was kept. */
export async function arrange(given: object = {}, server = new FakeServer()) {
  const audited: DeviceRecord[] = []
  const host = testHost({ spawn: server.spawn, services: { audit: async (record) => void audited.push(record) } })
  const build = async (changes: object = {}) => {
    const config = { servers: { notes: { command: 'notes-server', args: ['--all'], ...given, ...changes } } }
    const schema = feature.section?.schema
    if (!schema) throw new Error('The feature has no section')
    const parts = feature.build(host, v.parse(schema, config))
    await parts.register?.(new AbortController().signal)
    closing.push(async () => parts.close?.())
    return parts
  }
  let parts = await build()
  const named = (name: string): Tool => {
    const tool = parts.tools?.find((one) => one.name === name)
    if (!tool) throw new Error(`no tool ${name}; there are ${parts.tools?.map((one) => one.name)}`)
    return tool
  }
  return {
    host,
    /** The records of the audit log. */
    audited,
    server,
    parts: () => parts,
    named,
    /** Waits for the list that is asked for in the background. */
    listed: () => waitFor(() => expect(host.refreshes).not.toEqual([])),
    call: (
      name: string,
      input: object = {},
      { client = 'ann', approvedBy, ask, signal = new AbortController().signal }: CallOptions = {},
    ) =>
      named(name).run(input, {
        ...toolContext(signal, host.by),
        client: client as ClientId,
        ...(approvedBy !== undefined && { approvedBy }),
        ...(ask && { ask }),
      }),
    async restart(changes: object = {}) {
      await parts.close?.()
      parts = await build(changes)
    },
  }
}

export interface CallOptions {
  readonly client?: string
  readonly approvedBy?: string
  readonly ask?: NonNullable<ToolContext['ask']>
  readonly signal?: AbortSignal
}

export const serverWith = (...tools: FakeServer['tools']) => Object.assign(new FakeServer(), { tools })
export const asks = (tool: Tool) => (typeof tool.alwaysAsks === 'function' ? tool.alwaysAsks({}, testHost().by) : tool.alwaysAsks)
