/** Which processes live, as statements ask. */
import { TTL_MS } from './membership.ts'

/** True in a statement for the id of a process that beats. Null names no process. */
export const isAliveProcess = (id: string): string =>
  `EXISTS (SELECT 1 FROM processes WHERE processes.id = ${id} AND beat_at > clock_timestamp() - ${TTL_MS} * interval '1 millisecond')`
