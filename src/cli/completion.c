/*
 * `intact completion`: the scripts by which shells ask `intact complete`, which has the candidates
 * from the descriptions of the verbs.
 */

#include <stdio.h>

#include "cli/manual/manual.h"
#include "cli/verbs.h"

static const char bash[] =
    "# Completion of intact for bash; from intact completion bash.\n"
    "_intact() {\n"
    "    local program=${COMP_WORDS[0]/#\\~/$HOME} words=() reply=() word last=''\n"
    "    local i cut\n"
    "    command -v \"$program\" >/dev/null || program=intact\n"
    "    # bash takes words apart at : and =\n"
    "    for ((i = 1; i <= COMP_CWORD; i++)); do\n"
    "        word=${COMP_WORDS[i]}\n"
    "        if [[ ${#words[@]} -gt 0 && ($word == [:=]* || $last == *[:=]) ]]; then\n"
    "            words[${#words[@]} - 1]+=$word\n"
    "        else\n"
    "            words+=(\"$word\")\n"
    "        fi\n"
    "        last=$word\n"
    "    done\n"
    "    last=${words[${#words[@]} - 1]}\n"
    "    cut=${last%\"${last##*[:=]}\"}\n"
    "    mapfile -t reply < <(\"$program\" complete -- \"${words[@]}\" 2>/dev/null)\n"
    "    case ${reply[0]} in\n"
    "    :files | :folders)\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        [[ ${reply[0]} == :files ]] && i=-f || i=-d\n"
    "        mapfile -t COMPREPLY < <(compgen \"$i\" -- \"${last##*=}\")\n"
    "        return\n"
    "        ;;\n"
    "    esac\n"
    "    reply=(\"${reply[@]%%$'\\t'*}\")\n"
    "    COMPREPLY=(\"${reply[@]#\"$cut\"}\")\n"
    "    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=:] ]] && compopt -o nospace "
    "2>/dev/null\n"
    "    return 0\n"
    "}\n"
    "complete -F _intact intact\n";

static const char zsh[] =
    "#compdef intact\n"
    "# Completion of intact for zsh; from intact completion zsh.\n"
    "_intact() {\n"
    "    local -a lines names shown open_names open_shown\n"
    "    local line name\n"
    "    lines=(\"${(@f)$(\"${words[1]}\" complete -- \"${(@Q)words[2,CURRENT-1]}\" \"$PREFIX\" "
    "2>/dev/null)}\")\n"
    "    case ${lines[1]} in\n"
    "    :files) compset -P '--*='; _files; return ;;\n"
    "    :folders) compset -P '--*='; _files -/; return ;;\n"
    "    esac\n"
    "    for line in \"${lines[@]}\"; do\n"
    "        [[ -n $line ]] || continue\n"
    "        name=${line%%$'\\t'*}\n"
    "        line=${line/$'\\t'/  -- }\n"
    "        if [[ $name == *[=:] ]]; then\n"
    "            open_names+=(\"$name\") open_shown+=(\"$line\")\n"
    "        else\n"
    "            names+=(\"$name\") shown+=(\"$line\")\n"
    "        fi\n"
    "    done\n"
    "    compadd -l -d shown -a names\n"
    "    compadd -l -S '' -d open_shown -a open_names\n"
    "}\n"
    "if [[ $funcstack[1] == _intact ]]; then\n"
    "    _intact \"$@\"\n"
    "else\n"
    "    compdef _intact intact\n"
    "fi\n";

static const char fish[] =
    "# Completion of intact for fish; from intact completion fish.\n"
    "function __intact_complete\n"
    "    set -l words (commandline -opc)\n"
    "    set -l current (commandline -ct)\n"
    "    set -l reply ($words[1] complete -- $words[2..-1] \"$current\" 2>/dev/null)\n"
    "    switch \"$reply[1]\"\n"
    "        case :files\n"
    "            __fish_complete_path (string replace -r -- '^--[a-z-]*=' '' \"$current\")\n"
    "        case :folders\n"
    "            __fish_complete_directories (string replace -r -- '^--[a-z-]*=' '' \"$current\")\n"
    "        case '*'\n"
    "            printf '%s\\n' $reply\n"
    "    end\n"
    "end\n"
    "complete -c intact -f -a '(__intact_complete)'\n";

const char *completion_script(const char *shell)
{
    return shell[0] == 'b' ? bash : shell[0] == 'z' ? zsh : fish;
}

static int run(struct invocation *in)
{
    fputs(completion_script(in->words[0]), stdout);
    return CLI_OK;
}

const struct verb verb_completion = {
    .name = "completion",
    .summary = "print a completion script for a shell",
    .about = "Prints a script that completes verbs, flags, files, and names that it "
             "queries from the server. The Debian package installs these scripts.",
    .arguments = {{.name = "SHELL", .kind = WORD_CHOICE, .choices = "bash zsh fish"}},
    .examples = {{"source <(intact completion bash)",
                  "for this bash; put it into ~/.bashrc for all"},
                 {"intact completion zsh > ~/.zfunc/_intact", "for zsh, in a folder of fpath"},
                 {"intact completion fish > ~/.config/fish/completions/intact.fish", "for fish"}},
    .is_local = true,
    .run = run,
};
