/** The embedded database as the source or the target of a copy, for moves to and from a database server. */
export {
  COPIED_TABLES,
  type CopiedNumbers,
  type CopiedRow,
  type CopiedTable,
  LEFT_OUT_TABLES,
  sharedColumns,
} from './copied-tables.ts'
export { SqliteSource } from './sqlite-source.ts'
export { SqliteTarget } from './sqlite-target.ts'
