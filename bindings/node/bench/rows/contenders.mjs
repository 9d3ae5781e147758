/** Who is compared where. */

/** What starts programs on pipes. */
export const ON_PIPES = ['dsh-subprocess', 'child-process', 'execa']

/** What starts programs on terminals. */
export const ON_TERMINALS = ['dsh-subprocess', 'node-pty']

/** The memory of a large host. */
export const LARGE = 2 * 2 ** 30
