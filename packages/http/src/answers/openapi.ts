/** The OpenAPI 3.1 document of one snapshot, made from the descriptions of the routes that are served. */
import { eventSchema, ROLES, type Role, type RouteAuth } from '@sluice/sdk'
import type * as v from 'valibot'
import type { EndpointDoc } from '../request/context.ts'
import { chatFrameSchema, clientFrameSchema } from '../streams/chat-frames.ts'
import { streamFrameSchema } from '../streams/frames.ts'

type JsonSchema = Readonly<Record<string, unknown>>
type ToJsonSchema = (schema: v.GenericSchema, typeMode: 'input' | 'output') => JsonSchema

const ERROR_SCHEMA = {
  type: 'object',
  required: ['error', 'code'],
  properties: {
    error: { type: 'string', description: 'One sentence' },
    code: { type: 'string', description: 'The kind of error, for programs' },
    retry_after: { type: 'integer', description: 'Whole seconds after which a repeat may succeed; also in Retry-After' },
  },
} as const

const EVENT_ENVELOPE = {
  description: 'An event as subscribers receive it',
  allOf: [
    { $ref: '#/components/schemas/Event' },
    {
      type: 'object',
      required: ['id', 'timestamp'],
      properties: {
        id: { type: 'string', description: '`<run>-<number>`; the number grows by one within a run of the daemon' },
        timestamp: { type: 'string', description: 'RFC 3339' },
      },
    },
  ],
} as const

const ERROR = { $ref: '#/components/responses/Error' } as const

/** Loads the schema converter only when the document is requested. */
export async function openApiDocument(endpoints: readonly EndpointDoc[], version: string, publicUrl = '/'): Promise<object> {
  const { toJsonSchema } = await import('@valibot/to-json-schema')
  const got = new Map(endpoints.flatMap(({ method, path, answers }) => (method === 'GET' ? [[path as string, answers[200]?.schema]] : [])))
  const convert: ToJsonSchema = (schema, typeMode) => {
    const { $schema: _, ...rest } = toJsonSchema(schema, {
      typeMode,
      errorMode: 'ignore',
      overrideAction({ valibotAction }) {
        const { metadata } = valibotAction as { readonly metadata?: { readonly answerOf?: string } }
        const other = metadata?.answerOf === undefined ? undefined : got.get(metadata.answerOf)
        return other && convert(other, typeMode)
      },
    }) as Record<string, unknown>
    return rest
  }
  const paths: Record<string, Record<string, object>> = {}
  for (const endpoint of endpoints) {
    const path = endpoint.path.replace(/:(\w+)/g, '{$1}')
    paths[path] ??= {}
    paths[path][endpoint.method.toLowerCase()] = operation(endpoint, convert)
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Sluice', version },
    servers: [{ url: publicUrl }],
    paths,
    components: {
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description: 'The token of a paired device, which has a role. Each operation names the roles that it accepts',
        },
      },
      schemas: {
        Error: ERROR_SCHEMA,
        Event: convert(eventSchema, 'output'),
        EventEnvelope: EVENT_ENVELOPE,
        StreamFrame: convert(streamFrameSchema, 'output'),
        ChatFrame: convert(chatFrameSchema, 'output'),
        ChatClientFrame: convert(clientFrameSchema, 'input'),
      },
      responses: {
        Error: {
          description: 'A refusal or a failure',
          content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
        },
      },
    },
  }
}

function operation({ summary, auth, body, answers, mediaType = 'application/json', ...rest }: EndpointDoc, convert: ToJsonSchema): object {
  const responses = Object.entries(answers).map(([status, { description, schema }]) => {
    const content = schema
      ? { [mediaType]: { schema: convert(schema, 'output') } }
      : mediaType === 'application/json'
        ? undefined
        : { [mediaType]: {} }
    return [status, { description, ...(content ? { content } : {}) }] as const
  })
  return {
    summary,
    operationId: operationId(rest),
    security: isRole(auth) ? securityOf(auth) : [],
    parameters: parameters(rest, convert),
    ...(body ? { requestBody: { required: true, content: { 'application/json': { schema: convert(body, 'input') } } } } : {}),
    responses: { ...Object.fromEntries(responses), ...refusals(auth), default: ERROR },
  }
}

/** The method and the path in camel case, such as `getApiSessionsIdMessages`; unique for each route. */
const operationId = ({ method, path }: Pick<EndpointDoc, 'method' | 'path'>): string => {
  const words = path.split(/[^A-Za-z0-9]/).filter((word) => word !== '')
  return [method.toLowerCase(), ...words.map((word) => `${word[0]?.toUpperCase()}${word.slice(1)}`)].join('')
}

function parameters({ path, query, headers = {} }: Pick<EndpointDoc, 'path' | 'query' | 'headers'>, convert: ToJsonSchema): object[] {
  const { properties = {}, required = [] } = (query ? convert(query, 'input') : {}) as {
    properties?: Record<string, JsonSchema>
    required?: readonly string[]
  }
  return [
    ...[...path.matchAll(/:(\w+)/g)].map(([, name]) => ({ name, in: 'path', required: true, schema: { type: 'string' } })),
    ...Object.entries(properties).map(([name, schema]) => ({ name, in: 'query', required: required.includes(name), schema })),
    ...Object.entries(headers).map(([name, description]) => ({ name, in: 'header', description, schema: { type: 'string' } })),
  ]
}

const isRole = (auth: RouteAuth): auth is Role => auth === 'operator' || auth === 'client'

/** One alternative for each role that may call: OpenAPI 3.1 has no other way to state roles. */
const securityOf = (least: Role): object[] =>
  ROLES.filter((role) => role === 'operator' || role === least).map((role) => ({ bearer: [role] }))

/** The refusals that follow from the required role. */
const refusals = (auth: RouteAuth): object =>
  auth === 'open' ? {} : auth === 'local' ? { 403: ERROR } : auth === 'client' ? { 401: ERROR } : { 401: ERROR, 403: ERROR }
