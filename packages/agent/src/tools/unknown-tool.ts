/** Writes the answer to a call of a tool that does not exist. */
import { nearestNames } from '@sluice/kit'
import type { Tool } from '@sluice/sdk'

/** Other programs' names for a tool, in lower case and without `_` and `-`. Models are trained with the tools of these programs. */
const OTHER_NAMES = new Map([
  [
    'shell',
    ['bash', 'sh', 'terminal', 'exec', 'run', 'execute', 'executecommand', 'runcommand', 'runterminalcmd', 'runshellcommand', 'localshell'],
  ],
  ['shell_wait', ['bashoutput', 'readoutput', 'waitforcommand']],
  ['shell_stop', ['killshell', 'killbash', 'kill']],
  ['file_read', ['read', 'readfile', 'view', 'viewfile', 'cat', 'openfile', 'readmanyfiles']],
  ['file_write', ['write', 'writefile', 'writetofile', 'create', 'createfile', 'newfile', 'savefile']],
  [
    'file_edit',
    [
      'edit',
      'editfile',
      'multiedit',
      'strreplace',
      'strreplaceeditor',
      'strreplacebasededittool',
      'replace',
      'replaceinfile',
      'searchreplace',
    ].concat(['applypatch', 'applydiff']),
  ],
  ['file_list', ['ls', 'dir', 'list', 'listdir', 'listdirectory', 'listfiles']],
  ['grep', ['rg', 'ripgrep', 'search', 'grepsearch', 'searchfiles', 'searchfilecontent', 'codebasesearch']],
  ['glob', ['find', 'findfiles', 'filesearch', 'globsearch']],
  ['web_fetch', ['fetch', 'fetchurl', 'readurl', 'openurl', 'browse']],
  ['web_search', ['searchweb', 'google', 'googlesearch', 'googlewebsearch', 'internetsearch']],
  ['memory_store', ['remember', 'memory', 'savememory', 'addmemory']],
  ['memory_recall', ['recall', 'searchmemory', 'searchmemories']],
  ['schedule_create', ['remind', 'reminder', 'setreminder', 'cron']],
])

const NAMES_MAX = 5

/** Names the tools that were most likely meant, else a few that the model is offered. */
export function unknownTool(name: string, tools: readonly Tool[]): string {
  const plain = name.toLowerCase().replaceAll(/[_-]/g, '')
  const names = tools.map((tool) => tool.name)
  const meant = names.filter((one) => OTHER_NAMES.get(one)?.includes(plain))
  const near = [...new Set([...meant, ...nearestNames(name, names)])]
  const none = `There is no tool "${name}".`
  if (near.length > 0) return `${none} Similar names: ${near.join(', ')}.`
  if (names.length === 0) return `${none} There are no tools here.`
  // The tools of other programs can be many, and one that only reports is of no use to most turns.
  const own = tools.flatMap((tool) => (tool.inputSchema || tool.reportsOnly ? [] : tool.name))
  const shown = (own.length > 0 ? own : names).slice(0, NAMES_MAX)
  const more = names.length > shown.length ? ` and ${names.length - shown.length} more` : ''
  return `${none} Available tools: ${shown.join(', ')}${more}.`
}
