/** The parts that several sandbox backends use: seccomp filters, control groups, the setup of a command, and system paths. */
export { type ControlGroup, type ControlGroups, describeLimits, findControlGroups } from './control-groups.ts'
export {
  ALLOW,
  argumentAt,
  assembleFilter,
  type FilterInstruction,
  failWith,
  forCall,
  IF_ANY_BIT,
  IF_EQUAL,
  load,
  NOTIFY,
  NUMBER_AT,
  returns,
  returnsIf,
} from './filter-program.ts'
export { removeAbandonedFolders } from './process-folders.ts'
export { launchedCommand, limitedCommand, splitEnv, withoutGroupLimits } from './sandbox-command.ts'
export { seccompFilter } from './seccomp-filter.ts'
export { PROGRAM_FOLDERS, PUBLIC_ETC } from './system-paths.ts'
