/** The request and answer formats of the Bot API, for the telegram fake. */
import type { ProviderReply, ProviderRequest } from '@sluice/testkit/fake-provider'

/** The parameters of a method. */
export type Params = Readonly<Record<string, unknown>>

/** A successful answer. */
export const result = (value: unknown): ProviderReply => ({ status: 200, body: { ok: true, result: value } })

/** An error answer. */
export const refusal = (status: number, description: string, parameters?: object): ProviderReply => ({
  status,
  body: { ok: false, error_code: status, description, ...(parameters && { parameters }) },
})

/** An error answer with status 400. */
export const badRequest = (description: string, parameters?: object): ProviderReply =>
  refusal(400, `Bad Request: ${description}`, parameters)

/** Reads the parameters from the query, from JSON or from a form; files are `File`s. */
export async function paramsOf({ query, headers, body, json }: ProviderRequest): Promise<Params> {
  const type = headers.get('content-type') ?? ''
  if (type.startsWith('application/json')) return { ...Object.fromEntries(query), ...members(json) }
  if (!type.startsWith('multipart/form-data')) return Object.fromEntries(query)
  const form = await new Response(new Uint8Array(body), { headers: { 'content-type': type } }).formData()
  return { ...Object.fromEntries(query), ...Object.fromEntries(form) }
}

/** The members of an object; empty for any other value. */
export const members = (value: unknown): Params => (typeof value === 'object' && value !== null ? (value as Params) : {})

/** Returns an object, parsing the JSON text that a form carries; empty without one. */
export const object = (value: unknown): Params => {
  if (typeof value !== 'string') return members(value)
  try {
    return members(JSON.parse(value))
  } catch {
    return {}
  }
}

/** Returns a number or the number in a text; 0 for any other value. */
export const fromNumber = (value: unknown): number => {
  const number = typeof value === 'string' || typeof value === 'number' ? Number(value) : 0
  return Number.isSafeInteger(number) ? number : 0
}
