/** What the Linux sandboxes of Sluice share: seccomp filters, control groups and the words of a command. */
export { type ControlGroups, findControlGroups } from './control-groups.ts'
export {
  ALLOW,
  argumentAt,
  assembleFilter,
  type FilterInstruction,
  forCall,
  give,
  IF_ANY_BIT,
  IF_EQUAL,
  load,
  NUMBER_AT,
  refuse,
  when,
} from './filter-program.ts'
export { limitedWords, PROGRAM_FOLDERS, PUBLIC_ETC, splitEnv, startWords, withoutCounted } from './sandbox-command.ts'
export { seccompFilter } from './seccomp-filter.ts'
