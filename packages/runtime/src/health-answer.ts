/** The answers of `GET /health` and `GET /ready`. Commands read them too, and load nothing of the daemon for it. */
import * as v from 'valibot'

const linkSchema = v.object({ name: v.string(), state: v.picklist(['ok', 'connecting', 'degraded', 'down']) })

export const healthSchema = v.object({
  status: v.pipe(v.picklist(['ok', 'degraded']), v.description('`degraded`: a member below reports a problem')),
  require_pairing: v.boolean(),
  store: v.object({
    state: v.picklist(['ok', 'failing']),
    reason: v.pipe(v.nullable(v.string()), v.description('Such as `database or disk is full`')),
  }),
  config: v.object({
    state: v.pipe(
      v.picklist(['ok', 'rejected']),
      v.description('`rejected`: the file is not valid, so the configuration before it stays in force'),
    ),
  }),
  provider: v.object({
    state: v.pipe(v.picklist(['ok', 'failing', 'unknown']), v.description('The result of the last turn that asked the provider')),
  }),
  leases: v.pipe(
    v.object({ held: v.number(), wanted: v.number() }),
    v.description(
      'The leases of shards: the daemon runs the work of those that it holds. Fewer than wanted: another process has the rest, or may take it, because the database has taken no sign of life of this daemon for 4.5 seconds',
    ),
  ),
  node: v.pipe(v.nullable(v.string()), v.description('The name of this node of a cluster; null without `[cluster]`')),
  channels: v.array(linkSchema),
  links: v.pipe(v.array(linkSchema), v.description('Other connections that features keep open, such as the one to an MQTT broker')),
  warnings: v.pipe(
    v.array(v.string()),
    v.description(
      'Such as settings of a proxy that ignore its headers, or commands that run without a sandbox, or the clock of a node of a cluster that differs from that of the database',
    ),
  ),
})

export const readySchema = v.object({
  ready: v.boolean(),
  reason: v.nullable(v.string()),
  ...healthSchema.entries,
})

export type Health = v.InferOutput<typeof healthSchema>
