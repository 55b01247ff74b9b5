/** The types of the answers of the API, for clients written in TypeScript. */
export type { Status } from './routes/status.ts'
